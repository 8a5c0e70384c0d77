// Growing buffers, base64url, and the few members of JSON that the client reads.
#include "client.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void stop(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(1);
}

static void reserve(struct buffer *buffer, size_t more) {
    if (buffer->used + more <= buffer->capacity) return;
    buffer->capacity = (buffer->used + more) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->capacity);
    if (buffer->bytes == NULL) stop("no memory");
}

void append(struct buffer *buffer, const void *bytes, size_t count) {
    reserve(buffer, count + 1);
    memcpy(buffer->bytes + buffer->used, bytes, count);
    buffer->used += count;
    buffer->bytes[buffer->used] = 0;
}

void append_format(struct buffer *buffer, const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int count = vsnprintf(NULL, 0, format, values);
    reserve(buffer, count + 1);
    vsnprintf(buffer->bytes + buffer->used, count + 1, format, again);
    buffer->used += count;
    va_end(again);
    va_end(values);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void append_base64url(struct buffer *buffer, const void *bytes, size_t count) {
    const uint8_t *in = bytes;
    reserve(buffer, count * 4 / 3 + 5);
    char *out = buffer->bytes + buffer->used;
    for (size_t at = 0; at < count; at += 3) {
        size_t left = count - at;
        uint32_t word = in[at] << 16 | (left > 1 ? in[at + 1] << 8 : 0) | (left > 2 ? in[at + 2] : 0);
        *out++ = alphabet[word >> 18];
        *out++ = alphabet[word >> 12 & 63];
        if (left > 1) *out++ = alphabet[word >> 6 & 63];
        if (left > 2) *out++ = alphabet[word & 63];
    }
    *out = 0;
    buffer->used = out - buffer->bytes;
}

void append_hex(struct buffer *buffer, const void *bytes, size_t count) {
    for (size_t at = 0; at < count; at++) append_format(buffer, "%02x", ((const uint8_t *)bytes)[at]);
}

static int digit(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    return letter == '-' ? 62 : letter == '_' ? 63 : -1;
}

size_t decode_base64url(const char *text, size_t length, uint8_t *bytes, size_t capacity) {
    uint32_t word = 0;
    int bits = 0;
    size_t used = 0;
    for (size_t at = 0; at < length; at++) {
        int value = digit(text[at]);
        if (value < 0) stop("not base64url: %.*s", (int)length, text);
        word = word << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            if (used == capacity) stop("a value is too long");
            bytes[used++] = word >> bits;
        }
    }
    return used;
}

const char *member(const char *from, const char *name, char *value, size_t capacity) {
    char wanted[64];
    int length = snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    const char *at = strstr(from, wanted);
    if (at == NULL) return NULL;
    at += length;
    size_t used = 0;
    while (*at != '"') {
        if (*at == 0 || used + 1 >= capacity) return NULL;
        if (*at == '\\') {
            at++;
            value[used++] = *at == 'n' ? '\n' : *at;
        } else {
            value[used++] = *at;
        }
        at++;
    }
    value[used] = 0;
    return at + 1;
}
