/* fuzz_head.c - see fuzz_head.h. Owns the fields of the head that was cut last. */
#include "tests/proof/fuzz/fuzz_head.h"

#include "tests/proof/fuzz/fuzz.h"

void fuzz_head_cut(struct guard_head *head, char *text, size_t len)
{
    static struct header items[FUZZ_FIELDS_MAX];
    struct view rest = view_make(text, len), line = fuzz_line(&rest);
    struct view *words[] = { &head->method, &head->target, &head->version };
    for (size_t i = 0; i < 3; i++) {
        const char *blank = i == 2 || line.len == 0 ? NULL : memchr(line.ptr, ' ', line.len);
        size_t word = blank == NULL ? line.len : (size_t) (blank - line.ptr);
        *words[i] = view_make(line.ptr, word);
        word += blank != NULL;
        line = view_make(line.ptr + word, line.len - word);
    }
    size_t count = 0;
    while (rest.len > 0 && count < FUZZ_FIELDS_MAX - 1) {
        line = fuzz_line(&rest);
        const char *colon = line.len == 0 ? NULL : memchr(line.ptr, ':', line.len);
        size_t name = colon == NULL ? line.len : (size_t) (colon - line.ptr);
        size_t value = name + (colon != NULL);
        items[count].name = view_make(line.ptr, name);
        items[count++].value = view_trim(view_make(line.ptr + value, line.len - value));
    }
    for (size_t i = 0; i < len; i++) {
        text[i] = text[i] == 0x1E ? '\n' : text[i];
    }
    head->headers = (struct header_span){ items, count };
}
