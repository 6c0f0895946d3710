/* nearest.h - "did you mean": the candidate that is nearest to a word, if any is near. Pure. */
#ifndef NONBIS_CLI_NEAREST_H
#define NONBIS_CLI_NEAREST_H

struct nearest {
    const char *word;
    const char *best; /* NULL: none is near */
    unsigned distance;
};

void nearest_begin(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *candidate);

#endif
