/* key_make.c - see key_make.h; and the public functions about keys. */
#include "client-sdk/src/key_make.h"

#include "client-sdk/src/clock.h"
#include "common/key.h"

bool key_make(struct random_source *source, int64_t wall_ms, char out[NONBIS_KEY_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[16];
    out[0] = '\0';
    if (!source->fill(source, bytes, sizeof(bytes))) {
        return false;
    }
    uint64_t time = wall_ms > 0 ? (uint64_t) wall_ms : 0;
    for (int i = 0; i < 6; i++) {
        bytes[i] = (uint8_t) (time >> (8 * (5 - i)));
    }
    bytes[6] = (uint8_t) (0x70 | (bytes[6] & 0x0F)); /* version 7 */
    bytes[8] = (uint8_t) (0x80 | (bytes[8] & 0x3F)); /* variant 10 */
    char *at = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 0x0F];
    }
    *at = '\0';
    return true;
}

int nonbis_key_make(char key[NONBIS_KEY_SIZE])
{
    struct clock *clock = clock_system();
    if (key == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    return key_make(random_system(), clock->wall_ms(clock), key) ? NONBIS_OK : NONBIS_ERROR_RANDOM;
}

int nonbis_key_check(const char *text, const char **why)
{
    struct key key;
    if (text == NULL) {
        return NONBIS_ERROR_MISUSE;
    }
    enum key_result result = key_parse(view_of(text), &key);
    if (why != NULL) {
        *why = key_result_text(result);
    }
    return result == KEY_OK ? NONBIS_OK : NONBIS_ERROR_KEY;
}
