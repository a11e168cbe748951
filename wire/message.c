/*
 * Encodes and decodes control records. This is the only file that uses protobuf: nanopb's structs
 * do not leave it, and other files use structs of our own. Mandatory fields are `required` in the
 * schema, because a body that was truncated between two fields would otherwise decode successfully.
 * Ranges are checked by hand. Parsed data is not trusted; the session has checked what is encoded.
 */
#include "wire/message.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pb_decode.h>
#include <pb_encode.h>
#include <string.h>

#include "core/diag.h"
#include "crypto/fragment_make.h"
#include "wire/messages.pb.h"
#include "wire/record.h"

_Static_assert(sherd_pb_Hello_size <= SHERD__CONTROL_MAX &&
                   sherd_pb_Task_size <= SHERD__CONTROL_MAX &&
                   sherd_pb_Refuse_size <= SHERD__CONTROL_MAX,
               "every control body fits its cap");

_Static_assert(sizeof((sherd_pb_Hello *)0)->devices / sizeof(sherd_pb_Device) == SHERD__DEVICES_MAX,
               "as many devices as a node declares");

enum { WHAT_BLOCK = 1, WHAT_TASK = 2 };
enum { CODE_MIN = -999 }; /* no error codes are defined below this value */

static size_t encode(uint8_t *out, const pb_msgdesc_t *fields, const void *msg)
{
    pb_ostream_t stream = pb_ostream_from_buffer(out, SHERD__CONTROL_MAX);
    bool ok = pb_encode(&stream, fields, msg);
    assert(ok && "bounded messages fit their cap");
    (void)ok;
    return stream.bytes_written;
}

static int decode(void *msg, const pb_msgdesc_t *fields, const uint8_t *body, size_t len,
                  const char *name, sherd_diag *d)
{
    pb_istream_t stream = pb_istream_from_buffer(body, len);
    if (pb_decode(&stream, fields, msg)) return SHERD_OK;
    return sherd__fail(d, SHERD_EFRAME, NULL, "%s: body of %zu bytes: %s", name, len,
                       PB_GET_ERROR(&stream));
}

/* Copies at most size-1 bytes and replaces each byte that is not printable ASCII with '?'. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; n + 1 < size && text[n]; n++) out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    out[n] = 0;
}

size_t sherd__message_hello(uint8_t *out, const sherd__hello *h)
{
    sherd_pb_Hello m = {
        .minor_min = h->minor_min,
        .minor_max = h->minor_max,
        .features = h->features,
        .threads = h->threads,
        .memory = h->memory,
        .gflops = h->gflops,
        .has_residue_gflops = h->residue_gflops != 0,
        .residue_gflops = h->residue_gflops,
        .has_byte_gops = h->byte_gops != 0,
        .byte_gops = h->byte_gops,
        .has_copy_rate = h->copy_rate != 0,
        .copy_rate = h->copy_rate,
        .has_resident_gflops = h->resident_gflops != 0,
        .resident_gflops = h->resident_gflops,
        .has_resident_residue_gflops = h->resident_residue_gflops != 0,
        .resident_residue_gflops = h->resident_residue_gflops,
        .has_resident_byte_gops = h->resident_byte_gops != 0,
        .resident_byte_gops = h->resident_byte_gops,
    };
    copy_text(m.software, sizeof m.software, h->software);
    copy_text(m.blas_core, sizeof m.blas_core, h->blas_core);
    copy_text(m.backend, sizeof m.backend, h->backend);
    m.devices_count = (pb_size_t)h->devices_len;
    for (uint32_t i = 0; i < h->devices_len; i++) {
        const sherd__hello_device *v = &h->devices[i];
        m.devices[i] = (sherd_pb_Device){
            .does = v->does,
            .gflops = v->gflops,
            .residue_gflops = v->residue_gflops,
            .memory = v->memory,
            .cell = v->cell,
            .depth = v->depth,
            .has_byte_gops = v->byte_gops != 0,
            .byte_gops = v->byte_gops,
        };
    }
    m.has_uptime = m.has_memory_free = m.has_tasks = m.has_sessions = h->load.known;
    m.uptime = h->load.uptime_s;
    m.memory_free = h->load.memory_free;
    m.tasks = h->load.tasks;
    m.sessions = h->load.sessions;
    return encode(out, sherd_pb_Hello_fields, &m);
}

static bool is_rate(double gflops)
{
    return isfinite(gflops) && gflops >= 0;
}

bool sherd__hello_rates_ok(const sherd__hello *h)
{
    bool ok = is_rate(h->gflops) && is_rate(h->residue_gflops) && is_rate(h->byte_gops) &&
              is_rate(h->copy_rate) && is_rate(h->resident_gflops) &&
              is_rate(h->resident_residue_gflops) && is_rate(h->resident_byte_gops);
    if (h->devices_len > SHERD__DEVICES_MAX) return false;
    for (uint32_t i = 0; i < h->devices_len; i++)
        ok = ok && is_rate(h->devices[i].gflops) && is_rate(h->devices[i].residue_gflops) &&
             is_rate(h->devices[i].byte_gops);
    return ok;
}

static double rate_within(double gflops)
{
    return gflops < SHERD__HELLO_GFLOPS_MAX ? gflops : SHERD__HELLO_GFLOPS_MAX;
}

static uint64_t bytes_within(uint64_t bytes)
{
    return bytes < SHERD__HELLO_BYTES_MAX ? bytes : SHERD__HELLO_BYTES_MAX;
}

/* Reduces numbers to their limits; rates are valid. */
static void limit(sherd__hello *h)
{
    if (h->threads > SHERD__HELLO_THREADS_MAX) h->threads = SHERD__HELLO_THREADS_MAX;
    h->memory = bytes_within(h->memory);
    h->load.memory_free = bytes_within(h->load.memory_free);
    if (h->load.uptime_s > SHERD__HELLO_UPTIME_MAX) h->load.uptime_s = SHERD__HELLO_UPTIME_MAX;
    h->gflops = rate_within(h->gflops);
    h->residue_gflops = rate_within(h->residue_gflops);
    h->byte_gops = rate_within(h->byte_gops);
    if (h->copy_rate > SHERD__HELLO_COPY_MAX) h->copy_rate = SHERD__HELLO_COPY_MAX;
    h->resident_gflops = rate_within(h->resident_gflops);
    h->resident_residue_gflops = rate_within(h->resident_residue_gflops);
    h->resident_byte_gops = rate_within(h->resident_byte_gops);
    for (uint32_t i = 0; i < h->devices_len; i++) {
        sherd__hello_device *v = &h->devices[i];
        v->gflops = rate_within(v->gflops);
        v->residue_gflops = rate_within(v->residue_gflops);
        v->byte_gops = rate_within(v->byte_gops);
        v->memory = bytes_within(v->memory);
        v->cell = bytes_within(v->cell);
        if (v->depth > SHERD__HELLO_DEPTH_MAX) v->depth = SHERD__HELLO_DEPTH_MAX;
    }
}

int sherd__message_hello_parse(sherd__hello *out, const uint8_t *body, size_t len, sherd_diag *d)
{
    sherd_pb_Hello m = sherd_pb_Hello_init_zero;
    int err = decode(&m, sherd_pb_Hello_fields, body, len, "HELLO or WELCOME", d);
    if (err) return err;
    if (m.minor_min > m.minor_max)
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "minor versions %" PRIu32 " to %" PRIu32
                           ": the least is above the greatest",
                           m.minor_min, m.minor_max);
    sherd__hello h = {
        .minor_min = m.minor_min,
        .minor_max = m.minor_max,
        .features = m.features,
        .threads = m.threads,
        .memory = m.memory,
        .gflops = m.gflops,
        .residue_gflops = m.residue_gflops,
        .byte_gops = m.byte_gops,
        .copy_rate = m.copy_rate,
        .resident_gflops = m.resident_gflops,
        .resident_residue_gflops = m.resident_residue_gflops,
        .resident_byte_gops = m.resident_byte_gops,
        .devices_len = m.devices_count,
        .load = { .known = m.has_uptime && m.has_memory_free && m.has_tasks && m.has_sessions,
                  .uptime_s = m.uptime,
                  .memory_free = m.memory_free,
                  .tasks = m.tasks,
                  .sessions = m.sessions },
    };
    copy_text(h.software, sizeof h.software, m.software);
    copy_text(h.blas_core, sizeof h.blas_core, m.blas_core);
    copy_text(h.backend, sizeof h.backend, m.backend);
    for (uint32_t i = 0; i < h.devices_len; i++) {
        const sherd_pb_Device *v = &m.devices[i];
        h.devices[i] = (sherd__hello_device){ v->does, v->gflops, v->residue_gflops, v->memory,
                                              v->cell, v->depth,  v->byte_gops };
    }
    if (!sherd__hello_rates_ok(&h))
        return sherd__fail(d, SHERD_EFRAME, NULL, "a rate that is negative or not a number");
    limit(&h);
    *out = h;
    return SHERD_OK;
}

static sherd_pb_Description description_of(const sherd__fragment_info *i)
{
    return (sherd_pb_Description){
        .origin = i->origin,
        .dtype = i->dtype,
        .encoding = i->encoding,
        .primes = i->primes,
        .groups = i->groups,
        .rows = i->rows,
        .cols = i->cols,
        .len = i->len,
    };
}

static int info_of(sherd__fragment_info *out, const sherd_pb_Description *m, sherd_diag *d)
{
    if ((m->origin | m->dtype | m->encoding | m->primes) > UINT8_MAX)
        return sherd__fail(d, SHERD_EFRAME, NULL,
                           "description with origin %" PRIu32 ", dtype %" PRIu32
                           ", encoding %" PRIu32 ", primes %" PRIu32 ": each at most 255",
                           m->origin, m->dtype, m->encoding, m->primes);
    sherd__fragment_info info = {
        .origin = (uint8_t)m->origin,
        .dtype = (uint8_t)m->dtype,
        .encoding = (uint8_t)m->encoding,
        .primes = (uint8_t)m->primes,
        .groups = m->groups,
        .rows = m->rows,
        .cols = m->cols,
        .len = m->len,
    };
    int err = sherd__fragment_info_check(&info, d);
    if (!err) *out = info;
    return err;
}

size_t sherd__message_description(uint8_t *out, const sherd__fragment_info *info,
                                  const uint32_t *attempt)
{
    sherd_pb_Description m = description_of(info);
    m.has_attempt = attempt != NULL;
    m.attempt = attempt ? *attempt : 0;
    return encode(out, sherd_pb_Description_fields, &m);
}

int sherd__message_description_parse(sherd__fragment_info *out, uint32_t *attempt,
                                     const uint8_t *body, size_t len, sherd_diag *d)
{
    sherd_pb_Description m = sherd_pb_Description_init_zero;
    sherd__fragment_info info;
    int err = decode(&m, sherd_pb_Description_fields, body, len, "description", d);
    if (err) return err;
    if (m.has_attempt != (attempt != NULL))
        return sherd__fail(d, SHERD_EFRAME, NULL, "%s",
                           attempt ? "RESULT without its attempt" : "PUT with an attempt");
    err = info_of(&info, &m, d);
    if (err) return err;
    *out = info;
    if (attempt) *attempt = m.attempt;
    return SHERD_OK;
}

static sherd_pb_Windows windows_of(const sherd_windows *w)
{
    return (sherd_pb_Windows){
        .height = w->height,
        .width = w->width,
        .channels = w->channels,
        .window = w->window,
        .stride = w->stride,
        .padding = w->padding,
    };
}

size_t sherd__message_task(uint8_t *out, const sherd__task *t)
{
    sherd_pb_Task m = {
        .op = t->op,
        .flags = t->flags,
        .left = t->left,
        .right = t->right,
        .primes_count = (pb_size_t)t->primes_len,
        .result = description_of(&t->result),
        .has_windows = t->windows.window != 0,
        .windows = windows_of(&t->windows),
    };
    memcpy(m.primes, t->primes, sizeof m.primes);
    return encode(out, sherd_pb_Task_fields, &m);
}

int sherd__message_task_parse(sherd__task *out, const uint8_t *body, size_t len, sherd_diag *d)
{
    sherd_pb_Task m = sherd_pb_Task_init_zero;
    int err = decode(&m, sherd_pb_Task_fields, body, len, "TASK", d);
    if (err) return err;
    sherd__task t = {
        .op = m.op,
        .flags = m.flags,
        .left = m.left,
        .right = m.right,
        .primes_len = m.primes_count,
    };
    if (m.left == 0) return sherd__fail(d, SHERD_EFRAME, NULL, "TASK without a left block");
    if (m.flags & ~(uint32_t)(SHERD__DROP_LEFT | SHERD__DROP_RIGHT))
        return sherd__fail(d, SHERD_EFRAME, NULL, "TASK with flags 0x%" PRIx32, m.flags);
    for (uint32_t i = 0; i < t.primes_len; i++) {
        t.primes[i] = m.primes[i];
        if (m.primes[i] < 3 || m.primes[i] >= 1u << 24)
            return sherd__fail(d, SHERD_EFRAME, NULL,
                               "TASK modulo %" PRIu32 ": expected a prime of at most 24 bits",
                               m.primes[i]);
    }
    if (m.result.has_attempt) return sherd__fail(d, SHERD_EFRAME, NULL, "TASK with two attempts");
    err = info_of(&t.result, &m.result, d);
    if (err) return err;
    if (t.result.origin != SHERD__RESULT)
        return sherd__fail(d, SHERD_EFRAME, NULL, "TASK whose result has origin %u: expected %u",
                           t.result.origin, SHERD__RESULT);
    if (m.has_windows) {
        t.windows = (sherd_windows){ m.windows.height, m.windows.width,  m.windows.channels,
                                     m.windows.window, m.windows.stride, m.windows.padding };
        if (t.windows.window == 0)
            return sherd__fail(d, SHERD_EFRAME, NULL, "TASK with windows of 0 pixels");
    }
    *out = t;
    return SHERD_OK;
}

/* Maps an unknown error code of a peer to a known one: newer peers may send codes that this version
 * does not know. */
static int code_of(int32_t code)
{
    return strcmp(sherd_err_name(code), "EUNKNOWN") ? code : SHERD_EREFUSED;
}

size_t sherd__message_refuse(uint8_t *out, const sherd__refusal *r)
{
    sherd_pb_Refuse m = { .what = r->block ? WHAT_BLOCK : WHAT_TASK, .code = r->code };
    copy_text(m.text, sizeof m.text, r->text);
    return encode(out, sherd_pb_Refuse_fields, &m);
}

int sherd__message_refuse_parse(sherd__refusal *out, const uint8_t *body, size_t len, sherd_diag *d)
{
    sherd_pb_Refuse m = sherd_pb_Refuse_init_zero;
    int err = decode(&m, sherd_pb_Refuse_fields, body, len, "REFUSE", d);
    if (err) return err;
    if (m.what != WHAT_BLOCK && m.what != WHAT_TASK)
        return sherd__fail(d, SHERD_EFRAME, NULL, "REFUSE of kind %" PRIu32, m.what);
    if (m.code >= 0 || m.code < CODE_MIN)
        return sherd__fail(d, SHERD_EFRAME, NULL, "REFUSE with code %" PRId32, m.code);
    *out = (sherd__refusal){ .block = m.what == WHAT_BLOCK,
                             .task = m.what == WHAT_TASK,
                             .code = code_of(m.code) };
    copy_text(out->text, sizeof out->text, m.text);
    return SHERD_OK;
}

size_t sherd__message_bye(uint8_t *out, int code, const char *text)
{
    sherd_pb_Bye m = { .code = code };
    copy_text(m.text, sizeof m.text, text);
    return encode(out, sherd_pb_Bye_fields, &m);
}

int sherd__message_bye_parse(int *code, char *text, const uint8_t *body, size_t len, sherd_diag *d)
{
    sherd_pb_Bye m = sherd_pb_Bye_init_zero;
    int err = decode(&m, sherd_pb_Bye_fields, body, len, "BYE", d);
    if (err) return err;
    if (m.code > 0 || m.code < CODE_MIN)
        return sherd__fail(d, SHERD_EFRAME, NULL, "BYE with code %" PRId32, m.code);
    *code = m.code ? code_of(m.code) : 0;
    copy_text(text, SHERD__TEXT_MAX, m.text);
    return SHERD_OK;
}
