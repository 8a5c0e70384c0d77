// PKCS#11 as p11-kit declares it. A token's module is loaded while the program runs, so there is nothing to link.
#pragma once
#include <p11-kit-1/p11-kit/pkcs11.h>
