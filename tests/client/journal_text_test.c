/* The text of an entry: what exactly is written, that it comes back, and that nothing else is taken for an entry. */
#include "client-sdk/src/journal_digest.h"
#include "tests/client/journal_lab.h"

/* ---- written ------------------------------------------------------------------------------------------------------ */

#define GOLDEN_LINES                                                                                                   \
    "nonbis-journal 1\n"                                                                                               \
    "key 5:key/1\n"                                                                                                    \
    "method 4:POST\n"                                                                                                  \
    "url 28:http://127.0.0.1:8620/orders\n"                                                                            \
    "status-url 21:http://127.0.0.1:8621\n"                                                                            \
    "name 11:charge card\n"                                                                                            \
    "created 1732881600123\n"                                                                                          \
    "own-key 1\n"                                                                                                      \
    "field 12:Content-Type 16:application/json\n"                                                                      \
    "field 7:X-Order 3:a b\n"                                                                                          \
    "ended 1732881600456 outcome 1 stop 1 status 201\n"                                                                \
    "body 10:{\"n\":1}\n\0x\n"

/* By sha256sum over the lines above. */
#define GOLDEN GOLDEN_LINES "sha256 c35c4cdf37f5085e629f45f7496ab4d18a6cb55e78438603f75a1bc66dcc3437\n"

#define BARE_LINES                                                                                                     \
    "nonbis-journal 1\nkey 1:k\nmethod 3:PUT\nurl 9:http://h/\nstatus-url 0:\nname 0:\ncreated 0\nown-key 0\n"         \
    "ended 0 outcome 0 stop 0 status 0\nbody none\n"
#define BARE BARE_LINES "sha256 6dda376c94eb76b8cbae8f9d34bed27abaacb656f322d521e3c0ff5ad886754f\n"

START_TEST(an_entry_is_these_bytes_and_no_others)
{
    struct journal_record record = journal_lab_ended("key/1");
    struct buf text;
    buf_init(&text, JOURNAL_TEXT_MAX);
    journal_text_write(&record, &text);
    ck_assert(!text.failed);
    ck_assert_uint_eq(text.len, sizeof(GOLDEN) - 1);
    ck_assert_mem_eq(text.ptr, GOLDEN, sizeof(GOLDEN) - 1);
    buf_fini(&text);
    struct journal_record bare = { .key = "k", .method = "PUT", .url = "http://h/" };
    buf_init(&text, JOURNAL_TEXT_MAX);
    journal_text_write(&bare, &text);
    ck_assert_uint_eq(text.len, sizeof(BARE) - 1);
    ck_assert_mem_eq(text.ptr, BARE, sizeof(BARE) - 1);
    buf_fini(&text);
}
END_TEST

/* ---- read --------------------------------------------------------------------------------------------------------- */

/* From an allocation of exactly that size and one, so that a byte too far is seen. */
static enum journal_text_result read_bytes(const void *bytes, size_t len, struct journal_text *text, const char **why)
{
    char *copy = malloc(len + 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    return journal_text_read(text, copy, len, why);
}

START_TEST(an_entry_comes_back)
{
    struct journal_text text;
    const char *why = NULL;
    ck_assert_int_eq(read_bytes(GOLDEN, sizeof(GOLDEN) - 1, &text, &why), JOURNAL_TEXT_OK);
    journal_lab_check(&text.record, "key/1", true);
    journal_text_fini(&text);
    ck_assert_int_eq(read_bytes(BARE, sizeof(BARE) - 1, &text, &why), JOURNAL_TEXT_OK);
    ck_assert_str_eq(text.record.key, "k");
    ck_assert_str_eq(text.record.method, "PUT");
    ck_assert_str_eq(text.record.url, "http://h/");
    ck_assert_str_eq(text.record.status_url, "");
    ck_assert_str_eq(text.record.name, "");
    ck_assert_uint_eq(text.record.field_count, 0);
    ck_assert(!text.record.has_body && !text.record.own_key);
    ck_assert_uint_eq(text.record.body_len, 0);
    ck_assert_int_eq(text.record.created_wall_ms, 0);
    ck_assert_int_eq(text.record.ended_wall_ms, 0);
    journal_text_fini(&text);
}
END_TEST

START_TEST(every_beginning_of_an_entry_is_known_to_be_cut)
{
    for (size_t len = 0; len < sizeof(GOLDEN) - 1; len++) {
        struct journal_text text;
        const char *why = NULL;
        ck_assert_int_eq(read_bytes(GOLDEN, len, &text, &why), JOURNAL_TEXT_DAMAGED);
        ck_assert_str_ne(why, "");
        /* The same length, but the end never reached the disk. */
        char zeros[sizeof(GOLDEN)] = { 0 };
        memcpy(zeros, GOLDEN, len);
        ck_assert_int_eq(read_bytes(zeros, sizeof(GOLDEN) - 1, &text, &why), JOURNAL_TEXT_DAMAGED);
    }
    struct journal_text text;
    const char *why = NULL;
    ck_assert_int_eq(read_bytes(GOLDEN "\n", sizeof(GOLDEN), &text, &why), JOURNAL_TEXT_DAMAGED);
    ck_assert_int_eq(read_bytes(GOLDEN GOLDEN, 2 * (sizeof(GOLDEN) - 1), &text, &why), JOURNAL_TEXT_DAMAGED);
}
END_TEST

START_TEST(every_bit_that_turns_is_noticed)
{
    for (size_t at = 0; at < sizeof(GOLDEN) - 1; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct journal_text text;
            const char *why = NULL;
            char bytes[sizeof(GOLDEN)] = GOLDEN;
            bytes[at] = (char) (bytes[at] ^ (1 << bit));
            ck_assert_int_ne(read_bytes(bytes, sizeof(GOLDEN) - 1, &text, &why), JOURNAL_TEXT_OK);
        }
    }
}
END_TEST

/* Each row's lines get a check that fits, so that only the lines are judged. */
#define HEAD "nonbis-journal 1\nkey 1:k\nmethod 4:POST\nurl 9:http://h/\nstatus-url 0:\nname 0:\n"
#define ENDED "ended 0 outcome 0 stop 0 status 0\n"
#define ROW(text)                                                                                                      \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }
static const struct lines_row {
    const char *lines;
    size_t len;
} bad_rows[] = {
    ROW("nonbis-journal 1\n"),
    ROW("nonbis-journal 0\n" HEAD "created 1\nown-key 0\n" ENDED "body none\n"),
    ROW("nonbis-journal one\n"),
    ROW("nonbis-journal 99999999999999999999\n"),
    ROW("nonbis-journal 1\nkey 2:k\nmethod 4:POST\n"),
    ROW("nonbis-journal 1\nkey 0:k\nmethod 4:POST\n"),
    ROW("nonbis-journal 1\nkey -1:k\n"),
    ROW("nonbis-journal 1\nkey 18446744073709551615:k\n"),
    ROW("nonbis-journal 1\nkey 18446744073709551616:k\n"),
    ROW("nonbis-journal 1\nkey 1000000000:k\n"),
    ROW("nonbis-journal 1\nkey 1073741824:k\n"),
    ROW("nonbis-journal 1\nkey :k\n"),
    ROW("nonbis-journal 1\nkey 1:\0\nmethod 4:POST\nurl 9:http://h/\nstatus-url 0:\nname 0:\ncreated 1\nown-key "
        "0\n" ENDED "body none\n"),
    ROW("nonbis-journal 1\nmethod 4:POST\nkey 1:k\nurl 9:http://h/\nstatus-url 0:\nname 0:\n"),
    ROW(HEAD "created \nown-key 0\n" ENDED "body none\n"),
    ROW(HEAD "created 9223372036854775808\nown-key 0\n" ENDED "body none\n"),
    ROW(HEAD "created 1.5\nown-key 0\n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 2\n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 9\n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 0\nfield 1:a 1:b\nfield 1:a\n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 0\nfield 1:a\n1:b\n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 0\nfield \n" ENDED "body none\n"),
    ROW(HEAD "created 1\nown-key 0\nended 0 outcome 7 stop 0 status 0\nbody none\n"),
    ROW(HEAD "created 1\nown-key 0\nended 0 outcome 0 stop 12 status 0\nbody none\n"),
    ROW(HEAD "created 1\nown-key 0\nended 0 outcome 0 stop 0 status 2147483648\nbody none\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body nothing\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body 3:ab\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body 1:ab\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body 2:ab"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body 1073741824:ab\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body none\nbody none\n"),
    ROW(HEAD "created 1\nown-key 0\n" ENDED "body none\nextra 1\n"),
};

/* The lines and a check that fits. */
static size_t with_check(const char *lines, size_t len, char *out)
{
    static const char word[] = "sha256 ";
    memcpy(out, lines, len);
    memcpy(out + len, word, sizeof(word) - 1);
    journal_digest_hex(lines, len, out + len + sizeof(word) - 1);
    out[len + sizeof(word) - 1 + JOURNAL_DIGEST_HEX] = '\n';
    return len + sizeof(word) + JOURNAL_DIGEST_HEX;
}

START_TEST(lines_that_are_not_those_of_an_entry_are_refused)
{
    char bytes[4096];
    struct journal_text text;
    const char *why = NULL;
    size_t len = with_check(bad_rows[_i].lines, bad_rows[_i].len, bytes);
    ck_assert_msg(read_bytes(bytes, len, &text, &why) == JOURNAL_TEXT_DAMAGED, "%s", bad_rows[_i].lines);
    ck_assert_str_ne(why, "");
}
END_TEST

START_TEST(the_check_of_these_rows_is_the_one_that_is_read)
{
    char bytes[4096];
    struct journal_text text;
    const char *why = NULL;
    size_t len = with_check(GOLDEN_LINES, sizeof(GOLDEN_LINES) - 1, bytes);
    ck_assert_uint_eq(len, sizeof(GOLDEN) - 1);
    ck_assert_mem_eq(bytes, GOLDEN, len);
    static const char good[] = HEAD "created -1\nown-key 0\n" ENDED "body 0:\n";
    len = with_check(good, sizeof(good) - 1, bytes);
    ck_assert_int_eq(read_bytes(bytes, len, &text, &why), JOURNAL_TEXT_OK);
    ck_assert(text.record.has_body && text.record.body_len == 0 && text.record.created_wall_ms == -1);
    journal_text_fini(&text);
}
END_TEST

START_TEST(an_entry_of_a_newer_version_is_told_apart)
{
    static const char newer[] = "nonbis-journal 2\nwhatever comes then\n";
    struct journal_text text;
    const char *why = NULL;
    ck_assert_int_eq(read_bytes(newer, sizeof(newer) - 1, &text, &why), JOURNAL_TEXT_NEWER);
    ck_assert_str_eq(why, "a newer version of this library wrote it");
}
END_TEST

/* ---- random ------------------------------------------------------------------------------------------------------- */

static char *random_text(struct suite_random *random, size_t max)
{
    size_t len = suite_random_below(random, (unsigned) max + 1);
    char *text = malloc(len + 1);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < len; i++) {
        text[i] = (char) (1 + suite_random_below(random, 255));
    }
    text[len] = '\0';
    return text;
}

START_TEST(random_records_come_back)
{
    struct suite_random random;
    unsigned seed = suite_seed();
    suite_random_start(&random, seed);
    FIGURE("journal records seed=%u", seed);
    for (int round = 0; round < 2000; round++) {
        char *texts[5 + 2 * 20];
        struct transport_field fields[20];
        size_t field_count = suite_random_below(&random, 21), used = 0;
        while (used < 5 + 2 * field_count) {
            texts[used++] = random_text(&random, 60);
        }
        for (size_t i = 0; i < field_count; i++) {
            fields[i] = (struct transport_field){ texts[5 + 2 * i], texts[6 + 2 * i] };
        }
        char body[300];
        size_t body_len = suite_random_below(&random, sizeof(body));
        for (size_t i = 0; i < body_len; i++) {
            body[i] = (char) suite_random_next(&random);
        }
        const struct journal_record record = { .key = texts[0],
                                               .method = texts[1],
                                               .url = texts[2],
                                               .status_url = texts[3],
                                               .name = texts[4],
                                               .fields = fields,
                                               .field_count = field_count,
                                               .body = body,
                                               .body_len = body_len,
                                               .has_body = true,
                                               .own_key = suite_random_below(&random, 2) != 0,
                                               .created_wall_ms = (int64_t) suite_random_next(&random) - (1 << 30),
                                               .outcome = (enum nonbis_outcome) suite_random_below(&random, 7),
                                               .stop = (enum nonbis_stop) suite_random_below(&random, 12),
                                               .http_status = (int) suite_random_below(&random, 1000),
                                               .ended_wall_ms = (int64_t) suite_random_next(&random) << 20 };
        struct buf buf;
        struct journal_text back;
        const char *why = "";
        buf_init(&buf, JOURNAL_TEXT_MAX);
        journal_text_write(&record, &buf);
        ck_assert_msg(read_bytes(buf.ptr, buf.len, &back, &why) == JOURNAL_TEXT_OK, "round %d: %s", round, why);
        ck_assert_str_eq(back.record.key, texts[0]);
        ck_assert_str_eq(back.record.method, texts[1]);
        ck_assert_str_eq(back.record.url, texts[2]);
        ck_assert_str_eq(back.record.status_url, texts[3]);
        ck_assert_str_eq(back.record.name, texts[4]);
        ck_assert_uint_eq(back.record.field_count, field_count);
        for (size_t i = 0; i < field_count; i++) {
            ck_assert_str_eq(back.record.fields[i].name, fields[i].name);
            ck_assert_str_eq(back.record.fields[i].value, fields[i].value);
        }
        ck_assert_uint_eq(back.record.body_len, body_len);
        ck_assert_int_eq(memcmp(back.record.body, body, body_len), 0);
        ck_assert(back.record.own_key == record.own_key && back.record.created_wall_ms == record.created_wall_ms &&
                  back.record.outcome == record.outcome && back.record.stop == record.stop &&
                  back.record.http_status == record.http_status && back.record.ended_wall_ms == record.ended_wall_ms);
        journal_text_fini(&back);
        buf_fini(&buf);
        while (used > 0) {
            free(texts[--used]);
        }
    }
}
END_TEST

/* Bytes changed, removed, doubled, numbers made large; sometimes nothing but noise. */
static size_t mutate(struct suite_random *random, char *bytes, size_t len, size_t max)
{
    for (unsigned i = 1 + suite_random_below(random, 4); i > 0 && len > 1; i--) {
        size_t at = suite_random_below(random, (unsigned) len);
        size_t span = 1 + suite_random_below(random, 12);
        span = at + span > len ? len - at : span;
        switch (suite_random_below(random, 6)) {
        case 0:
            bytes[at] = (char) suite_random_next(random);
            break;
        case 1:
            memmove(bytes + at, bytes + at + span, len - at - span);
            len -= span;
            break;
        case 2:
            if (len + span <= max) {
                memmove(bytes + at + span, bytes + at, len - at);
                len += span;
            }
            break;
        case 3:
            for (; at < len && (bytes[at] < '0' || bytes[at] > '9'); at++) {
            }
            if (at < len) {
                bytes[at] = (char) ('0' + suite_random_below(random, 10));
            }
            break;
        case 4:
            len = at;
            break;
        default:
            for (size_t j = at; j < at + span; j++) {
                bytes[j] = "\n\0: 9"[suite_random_below(random, 5)];
            }
            break;
        }
    }
    return len;
}

START_TEST(noise_and_changed_entries_never_crash_the_reader)
{
    static const struct lines_row seeds[] = { ROW(GOLDEN_LINES), ROW(BARE_LINES),
                                              ROW(HEAD "created -1\nown-key 0\n" ENDED "body 0:\n") };
    struct suite_random random;
    unsigned seed = suite_seed(), taken = 0, refused = 0;
    suite_random_start(&random, seed);
    for (int round = 0; round < 60000; round++) {
        char lines[2048], bytes[4096];
        struct journal_text text;
        const char *why = NULL;
        const struct lines_row *from = &seeds[suite_random_below(&random, 3)];
        memcpy(lines, from->lines, from->len);
        size_t len = mutate(&random, lines, from->len, 2000);
        if (round % 16 == 0) {
            for (size_t i = 0; i < len; i++) {
                lines[i] = (char) suite_random_next(&random);
            }
        }
        bool checked = round % 4 != 0; /* else the reader does not get past the check */
        if (checked) {
            len = with_check(lines, len, bytes);
        } else {
            memcpy(bytes, lines, len);
        }
        if (read_bytes(bytes, len, &text, &why) == JOURNAL_TEXT_OK) {
            /* Only with a check that fits; and all of it can be read. */
            ck_assert(checked);
            taken += strlen(text.record.key) + strlen(text.record.url) + strlen(text.record.name) < len ? 1 : 0;
            for (size_t i = 0; i < text.record.field_count; i++) {
                ck_assert_uint_lt(strlen(text.record.fields[i].name) + strlen(text.record.fields[i].value), len);
            }
            ck_assert_uint_lt(text.record.body_len, len);
            journal_text_fini(&text);
        } else {
            ck_assert_str_ne(why, "");
            refused++;
        }
    }
    FIGURE("journal fuzz seed=%u taken=%u refused=%u", seed, taken, refused);
    ck_assert_uint_gt(taken, 100);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

SUITE(journal_text)
{
    Suite *suite = suite_create("client/journal_text");
    CASE(suite, an_entry_is_these_bytes_and_no_others);
    CASE(suite, an_entry_comes_back);
    CASE(suite, every_beginning_of_an_entry_is_known_to_be_cut);
    CASE(suite, every_bit_that_turns_is_noticed);
    CASE_LOOP(suite, lines_that_are_not_those_of_an_entry_are_refused, sizeof(bad_rows) / sizeof(bad_rows[0]));
    CASE(suite, the_check_of_these_rows_is_the_one_that_is_read);
    CASE(suite, an_entry_of_a_newer_version_is_told_apart);
    CASE(suite, random_records_come_back);
    CASE(suite, noise_and_changed_entries_never_crash_the_reader);
    return suite;
}
