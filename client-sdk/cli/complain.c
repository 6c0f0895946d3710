/* complain.c - see complain.h. */
#include "client-sdk/cli/complain.h"

#include "client-sdk/cli/file.h"

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
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char) line[i];
        if (byte < 0x20 || byte == 0x7F) {
            line[i] = '?';
        }
    }
    line[len++] = '\n';
    (void) file_write(STDERR_FILENO, line, len); /* nobody is left to be told */
}
