// PKCS#11 as p11-kit declares it. The module of a token is loaded at run time, so no library is
// linked.
#pragma once
#include <p11-kit-1/p11-kit/pkcs11.h>
