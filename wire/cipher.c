/*
 * Measures AES-128-GCM throughput: one OpenSSL context with an all-zero key encrypts buffers of the
 * size of a TLS record in place. This is the work that TLS does on each byte, without its record
 * handling. The output is discarded.
 */
#include "wire/cipher.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdint.h>

#include "core/clock.h"

enum { RECORD = 16384, RECORDS = 16, ROUNDS = 4 };

#define AT_LEAST 50e6 /* assumed without AES instructions, or if the measurement fails */

static double rate = AT_LEAST;
static pthread_once_t measured = PTHREAD_ONCE_INIT;

static void measure(void)
{
    static const uint8_t key[16], iv[12];
    static uint8_t record[RECORD];
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int n, ok = c && EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), NULL, key, iv) == 1;
    for (int round = 0; ok && round < ROUNDS; round++) {
        double began = sherd__clock_s();
        for (int i = 0; ok && i < RECORDS; i++)
            ok = EVP_EncryptInit_ex(c, NULL, NULL, NULL, iv) == 1 &&
                 EVP_EncryptUpdate(c, record, &n, record, RECORD) == 1;
        double seconds = sherd__clock_s() - began;
        if (ok && seconds > 0 && RECORDS * (double)RECORD / seconds > rate)
            rate = RECORDS * (double)RECORD / seconds;
    }
    EVP_CIPHER_CTX_free(c);
}

double sherd__cipher_rate(void)
{
    pthread_once(&measured, measure);
    return rate;
}
