/* What the files of a view share: conversations (view.c), and folders of them (view_folder.c). */
#ifndef AUDIT_VIEW_INTERNAL_H
#define AUDIT_VIEW_INTERNAL_H

#include "audit/view.h"

/** Adds to what was said already, as far as there is room. */
void sherd__view_say(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define SHERD__SAY(text, ...) sherd__view_say(text, sizeof(text), __VA_ARGS__)

/** Room for one more element of an array that grows; NULL: no memory, and it is as it was. */
void *sherd__view_grown(void *list, size_t len, size_t *room, size_t size);

/** Reads one more conversation of a node, which is the node's from when v->streams_len has grown:
 *  its blocks and tasks, and of either file how far it goes. SHERD_ENOMEM. */
int sherd__view_stream_add(sherd__node_view *v, sherd__view_stream *s) SHERD_MUST;
void sherd__view_stream_close(sherd__view_stream *s);
void sherd__node_view_fini(sherd__node_view *v);

/** Reads what a coordinator's record in `dir` says of codes and of a training's order of rows,
 *  where it does; what cannot be used is said (v->trouble). SHERD_ENOMEM. */
int sherd__view_coded_read(sherd__views *v, const char *dir) SHERD_MUST;

#endif
