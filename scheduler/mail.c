/* Flags under a lock, which also orders what was written before them. */
#include "scheduler/mail.h"

#include <stddef.h>

void sherd__mail_init(sherd__mail *m)
{
    *m = (sherd__mail){ .asked = NULL };
    pthread_mutex_init(&m->lock, NULL);
}

void sherd__mail_fini(sherd__mail *m)
{
    pthread_mutex_destroy(&m->lock);
}

static bool get(sherd__mail *m, const bool *flag)
{
    pthread_mutex_lock(&m->lock);
    bool is = *flag;
    pthread_mutex_unlock(&m->lock);
    return is;
}

static void set(sherd__mail *m, bool *flag)
{
    pthread_mutex_lock(&m->lock);
    *flag = true;
    pthread_mutex_unlock(&m->lock);
}

void sherd__mail_ask(sherd__mail *m, void *what)
{
    pthread_mutex_lock(&m->lock);
    m->asked = what;
    m->answered = false;
    pthread_mutex_unlock(&m->lock);
}

bool sherd__mail_answered(sherd__mail *m)
{
    return get(m, &m->answered);
}

bool sherd__mail_ready(sherd__mail *m)
{
    return get(m, &m->ready);
}

void sherd__mail_finish(sherd__mail *m)
{
    set(m, &m->finish);
}

void *sherd__mail_asked(sherd__mail *m)
{
    pthread_mutex_lock(&m->lock);
    void *what = m->asked;
    pthread_mutex_unlock(&m->lock);
    return what;
}

void *sherd__mail_take(sherd__mail *m)
{
    pthread_mutex_lock(&m->lock);
    void *what = m->asked;
    m->asked = NULL;
    pthread_mutex_unlock(&m->lock);
    return what;
}

void sherd__mail_answer(sherd__mail *m)
{
    set(m, &m->answered);
}

void sherd__mail_stands(sherd__mail *m)
{
    set(m, &m->ready);
}

bool sherd__mail_finishing(sherd__mail *m)
{
    return get(m, &m->finish);
}
