/* block_test.c - blocks against another implementation (SipHash-2-4 written in Python, held against its published vectors). */
#include "server/digest/block.h"

#include "tests/support/suite.h"

static const struct {
    uint8_t key_step;                /* key byte i is i times this */
    uint8_t plain_from, plain_step;  /* likewise */
    uint8_t wanted[BLOCK_BYTES + 1]; /* and the text's end */
} rows[] = {
    { 1, 0, 0, "\x6d\x6c\x98\xb5\xa3\x9b\x40\xf6\x58\x66\xb8\xb2\x98\x82\xce\xa2" },
    { 1, 0, 1, "\x67\x11\xdf\x74\xd5\x99\xcf\xc0\x34\x69\x2e\xa9\xa5\x6f\x86\x45" },
    { 1, 255, 0, "\x56\x10\xe2\xfc\x77\x44\xe5\xa1\xbc\xf3\x05\x2d\x8e\xe6\x88\x66" },
    { 0, 0, 0, "\x81\x36\x92\xdc\x9b\x21\x32\x29\xd1\x4f\x50\x70\x75\xee\x06\x28" },
    { 0, 0, 1, "\x30\x8c\xd0\x14\x51\x17\x0d\x9a\xba\x10\x41\x4a\x0e\x9e\x5a\x8a" },
    { 0, 255, 0, "\x01\x6c\xea\x53\x7d\xc6\x88\xfa\x93\x50\x8b\x73\xdf\x4d\x2b\xd9" },
};

START_TEST(a_block_has_the_value_of_another_implementation_and_comes_back)
{
    uint8_t key[BLOCK_KEY_BYTES], plain[BLOCK_BYTES], block[BLOCK_BYTES];
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        key[i] = (uint8_t) (i * rows[_i].key_step);
        plain[i] = (uint8_t) (rows[_i].plain_from + i * rows[_i].plain_step);
    }
    memcpy(block, plain, sizeof block);
    block_encipher(key, block);
    ck_assert_mem_eq(block, rows[_i].wanted, BLOCK_BYTES);
    block_decipher(key, block);
    ck_assert_mem_eq(block, plain, BLOCK_BYTES);
}
END_TEST

/* A bit of either side moves about half of the other side's 128 bits. */
START_TEST(one_bit_changes_half_of_a_block_in_both_directions)
{
    const uint8_t key[BLOCK_KEY_BYTES] = { 7 };
    for (unsigned bit = 0; bit < 8 * BLOCK_BYTES; bit++) {
        uint8_t blocks[2][2][BLOCK_BYTES] = { { { 0 } } };
        int moved[2] = { 0, 0 };
        for (int way = 0; way < 2; way++) {
            blocks[way][1][bit / 8] = (uint8_t) (1 << bit % 8);
            for (int i = 0; i < 2; i++) {
                (way == 0 ? block_encipher : block_decipher)(key, blocks[way][i]);
            }
            for (unsigned i = 0; i < BLOCK_BYTES; i++) {
                moved[way] += __builtin_popcount((unsigned) (blocks[way][0][i] ^ blocks[way][1][i]));
            }
        }
        ck_assert_msg(moved[0] > 32 && moved[0] < 96 && moved[1] > 32 && moved[1] < 96, "bit %u: %d, %d", bit, moved[0],
                      moved[1]);
    }
}
END_TEST

SUITE(digest_block)
{
    Suite *suite = suite_create("digest/block");
    CASE_LOOP(suite, a_block_has_the_value_of_another_implementation_and_comes_back, sizeof rows / sizeof rows[0]);
    CASE(suite, one_bit_changes_half_of_a_block_in_both_directions);
    return suite;
}
