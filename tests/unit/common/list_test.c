/* list_test.c - common/list.h. */
#include "common/list.h"
#include "tests/support/suite.h"

struct thing {
    int number;
    struct list_node node;
};

static int take_number(struct list *list)
{
    struct list_node *node = list_take_first(list);
    return node == NULL ? -1 : LIST_ITEM(node, struct thing, node)->number;
}

START_TEST(things_leave_in_order_and_from_the_middle)
{
    struct list list;
    struct thing things[4] = { { .number = 0 }, { .number = 1 }, { .number = 2 }, { .number = 3 } };
    list_init(&list);
    ck_assert_ptr_null(list_first(&list));
    list_append(&list, &things[1].node);
    list_append(&list, &things[2].node);
    list_append(&list, &things[3].node);
    list_prepend(&list, &things[0].node);
    list_remove(&list, &things[2].node);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_ptr_null(things[2].node.next);
    ck_assert_int_eq(take_number(&list), 0);
    ck_assert_int_eq(take_number(&list), 1);
    ck_assert_int_eq(take_number(&list), 3);
    ck_assert_int_eq(take_number(&list), -1);
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(splicing_moves_everything_to_the_end)
{
    struct list to, from;
    struct thing things[3] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
    list_init(&to);
    list_init(&from);
    list_splice(&to, &from);
    ck_assert_uint_eq(to.count, 0);
    list_append(&to, &things[0].node);
    list_append(&from, &things[1].node);
    list_append(&from, &things[2].node);
    list_splice(&to, &from);
    ck_assert_uint_eq(to.count, 3);
    ck_assert_uint_eq(from.count, 0);
    ck_assert_ptr_null(list_first(&from));
    ck_assert_int_eq(take_number(&to), 0);
    ck_assert_int_eq(take_number(&to), 1);
    ck_assert_int_eq(take_number(&to), 2);
}
END_TEST

SUITE(list)
{
    Suite *suite = suite_create("common/list");
    CASE(suite, things_leave_in_order_and_from_the_middle);
    CASE(suite, splicing_moves_everything_to_the_end);
    return suite;
}
