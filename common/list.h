/* list.h - intrusive, counted, doubly linked list.
 *
 * The node lives inside the thing that is listed, so adding never fails and a thing knows how to leave.
 * Owns nothing. One thread at a time. */
#ifndef NONBIS_COMMON_LIST_H
#define NONBIS_COMMON_LIST_H

#include <stddef.h>

struct list_node {
    struct list_node *next, *prev; /* both NULL: in no list */
};

struct list {
    struct list_node head; /* circular: head.next is the first */
    size_t count;
};

/* The thing around a node. */
#define LIST_ITEM(node, type, member) ((type *) (void *) ((char *) (node) -offsetof(type, member)))

static inline void list_init(struct list *list)
{
    list->head.next = list->head.prev = &list->head;
    list->count = 0;
}

static inline struct list_node *list_first(const struct list *list)
{
    return list->head.next == &list->head ? NULL : list->head.next;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    node->prev = list->head.prev;
    node->next = &list->head;
    list->head.prev->next = node;
    list->head.prev = node;
    list->count++;
}

static inline void list_prepend(struct list *list, struct list_node *node)
{
    node->next = list->head.next;
    node->prev = &list->head;
    list->head.next->prev = node;
    list->head.next = node;
    list->count++;
}

static inline void list_remove(struct list *list, struct list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
    list->count--;
}

static inline struct list_node *list_take_first(struct list *list)
{
    struct list_node *node = list_first(list);
    if (node != NULL) {
        list_remove(list, node);
    }
    return node;
}

/* Moves everything from `from` to the end of `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (from->count == 0) {
        return;
    }
    from->head.next->prev = to->head.prev;
    from->head.prev->next = &to->head;
    to->head.prev->next = from->head.next;
    to->head.prev = from->head.prev;
    to->count += from->count;
    list_init(from);
}

#endif
