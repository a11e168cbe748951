/* Shared by the files on views: conversations (view.c), and folders of them (view_folder.c). */
#ifndef AUDIT_VIEW_INTERNAL_H
#define AUDIT_VIEW_INTERNAL_H

#include "audit/view.h"

/** Appends to the text, if there is room. */
void sherd__view_say(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define SHERD__SAY(text, ...) sherd__view_say(text, sizeof(text), __VA_ARGS__)

/** Makes room for one more element of a growing array. Returns NULL, with the array unchanged,
 *  without memory. */
void *sherd__view_grown(void *list, size_t len, size_t *room, size_t size);

/** Reads one more conversation of a node: its blocks and tasks, and for both files how far they can
 *  be read. The conversation belongs to the node once v->streams_len has grown. SHERD_ENOMEM. */
int sherd__view_stream_add(sherd__node_view *v, sherd__view_stream *s) SHERD_MUST;
void sherd__view_stream_close(sherd__view_stream *s);
void sherd__node_view_fini(sherd__node_view *v);

/** Reads codes and the order of a training's rows from the coordinator's record in `dir`, if it has
 *  them. What cannot be used is reported (v->trouble). SHERD_ENOMEM. */
int sherd__view_coded_read(sherd__views *v, const char *dir) SHERD_MUST;

#endif
