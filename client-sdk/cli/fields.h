/* fields.h - the request's fields: -H and --auth-file, put on an operation. */
#ifndef NONBIS_CLI_FIELDS_H
#define NONBIS_CLI_FIELDS_H

#include "client-sdk/cli/options.h"
#include "common/buf.h"

struct fields {
    const struct options *options;
    struct buf secret; /* the text of --auth-file, cut into lines; read once, put on every operation */
};

/* False: it said what is wrong. fini either way. */
bool fields_init(struct fields *fields, const struct options *options);
void fields_fini(struct fields *fields);

/* Sets them all; with a body and no Content-Type of the caller's, application/json. False: it said what is wrong. */
bool fields_put(const struct fields *fields, struct nonbis_op *op, bool has_body);

/* Sets those that an operation of the journal lacks (nonbis_op_lacks), and no other: several commands are not of one caller by
 * necessity, and a field too many makes another request too. False: it said what is wrong. */
bool fields_put_lacking(const struct fields *fields, struct nonbis_op *op);

/* Whether a field's name tells that its value is nobody's business: not stored, not shown. */
bool field_is_secret(const char *name);

/* Whether any of them is secret, and so not in the journal. */
bool fields_have_secrets(const struct fields *fields);

/* Calls back with every field as fields_put would set it. */
bool fields_each(const struct fields *fields, bool has_body,
                 bool (*each)(void *arg, const char *name, const char *value, bool secret), void *arg);

#endif
