/* from_cxx.cpp - compiled as C++11 by the Makefile: the header serves C++, and its names link. Run by the tests of the client. */
#include <nonbis.h>

#include <cstdio>

int main()
{
    nonbis_client *client = nullptr;
    nonbis_op *op = nullptr;
    int error = nonbis_client_new(&client, nullptr);
    if (error == NONBIS_OK) {
        error = nonbis_op_new(&op, client, "ftp://example/", nullptr, 0);
    }
    std::printf("%s: %s\n", nonbis_version(), nonbis_error_text(error));
    nonbis_op_free(op);
    nonbis_client_free(client);
    return error == NONBIS_ERROR_URL ? 0 : 1;
}
