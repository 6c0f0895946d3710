/* options.h - the command line of the order handler. Owns nothing: texts point into argv. */
#ifndef ORDER_HANDLER_OPTIONS_H
#define ORDER_HANDLER_OPTIONS_H

#include "examples/order-handler/faults.h"

struct options {
    char host[64]; /* numeric IPv4 address */
    unsigned port; /* 0: the kernel chooses */
    const char *db;
    struct faults faults;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG };

/* Says on stderr what is wrong; prints the help on stdout for --help. */
enum options_result options_read(int argc, char **argv, struct options *options);

#endif
