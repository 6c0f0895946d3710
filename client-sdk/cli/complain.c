/* complain.c - see complain.h. */
#include "client-sdk/cli/complain.h"

#include "client-sdk/cli/file.h"
#include "client-sdk/cli/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void complain(const char *format, ...)
{
    static const char prefix[] = "nonbis: ";
    char line[4096];
    size_t len = sizeof prefix - 1;
    memcpy(line, prefix, len);
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(line + len, sizeof line - len - 1, format, arguments);
    va_end(arguments);
    if (wrote > 0) {
        len += (size_t) wrote < sizeof line - len - 1 ? (size_t) wrote : sizeof line - len - 2;
    }
    printable_clean(line, len, false);
    line[len++] = '\n';
    (void) file_write(STDERR_FILENO, line, len); /* nobody is left to be told */
}
