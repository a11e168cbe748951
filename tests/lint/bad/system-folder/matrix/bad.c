/* Wrong. */
#include <openssl/evp.h>
