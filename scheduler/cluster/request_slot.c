/* Flags under a lock, which also orders earlier writes. */
#include "scheduler/cluster/request_slot.h"

#include <stddef.h>

void sherd__request_slot_init(sherd__request_slot *m)
{
    *m = (sherd__request_slot){ .asked = NULL };
    pthread_mutex_init(&m->lock, NULL);
}

void sherd__request_slot_fini(sherd__request_slot *m)
{
    pthread_mutex_destroy(&m->lock);
}

static bool get(sherd__request_slot *m, const bool *flag)
{
    pthread_mutex_lock(&m->lock);
    bool is = *flag;
    pthread_mutex_unlock(&m->lock);
    return is;
}

static void set(sherd__request_slot *m, bool *flag)
{
    pthread_mutex_lock(&m->lock);
    *flag = true;
    pthread_mutex_unlock(&m->lock);
}

void sherd__request_slot_ask(sherd__request_slot *m, void *what)
{
    pthread_mutex_lock(&m->lock);
    m->asked = what;
    m->answered = false;
    pthread_mutex_unlock(&m->lock);
}

bool sherd__request_slot_answered(sherd__request_slot *m)
{
    return get(m, &m->answered);
}

bool sherd__request_slot_ready(sherd__request_slot *m)
{
    return get(m, &m->ready);
}

void sherd__request_slot_finish(sherd__request_slot *m)
{
    set(m, &m->finish);
}

void *sherd__request_slot_asked(sherd__request_slot *m)
{
    pthread_mutex_lock(&m->lock);
    void *what = m->asked;
    pthread_mutex_unlock(&m->lock);
    return what;
}

void *sherd__request_slot_take(sherd__request_slot *m)
{
    pthread_mutex_lock(&m->lock);
    void *what = m->asked;
    m->asked = NULL;
    pthread_mutex_unlock(&m->lock);
    return what;
}

void sherd__request_slot_answer(sherd__request_slot *m)
{
    set(m, &m->answered);
}

void sherd__request_slot_stands(sherd__request_slot *m)
{
    set(m, &m->ready);
}

bool sherd__request_slot_finishing(sherd__request_slot *m)
{
    return get(m, &m->finish);
}
