// libseccomp for Swift. Macros that Swift cannot import have an inline variant here.
#pragma once
#include <seccomp.h>

static inline uint32_t cseccomp_refuse(uint16_t number) {
    return SCMP_ACT_ERRNO(number);
}

static const uint32_t cseccomp_allow = SCMP_ACT_ALLOW;
static const uint32_t cseccomp_kill = SCMP_ACT_KILL_PROCESS;
