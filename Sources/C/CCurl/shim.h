#pragma once
#include <curl/curl.h>

// Curl: variadic functions, one variant for each type of value.

static inline CURLcode ccurl_set_number(CURL *transfer, CURLoption option, long value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode ccurl_set_count(CURL *transfer, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode ccurl_set_text(CURL *transfer, CURLoption option, const char *value) {
    return curl_easy_setopt(transfer, option, value);
}

/// Sets the context of callbacks, and bodies and lists, which have various types.
static inline CURLcode ccurl_set_pointer(CURL *transfer, CURLoption option, const void *value) {
    return curl_easy_setopt(transfer, option, value);
}

/// Sets bytes, which libcurl copies.
static inline CURLcode ccurl_set_bytes(CURL *transfer, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(transfer, option, &blob);
}

static inline CURLcode ccurl_set_receiver(CURL *transfer, CURLoption option, curl_write_callback value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode ccurl_set_opener(CURL *transfer, curl_opensocket_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_OPENSOCKETFUNCTION, value);
}

static inline CURLcode ccurl_set_readiness(CURL *transfer, curl_prereq_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_PREREQFUNCTION, value);
}

static inline CURLcode ccurl_set_closer(CURL *transfer, curl_closesocket_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_CLOSESOCKETFUNCTION, value);
}

static inline CURLcode ccurl_set_sender(CURL *transfer, curl_read_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_READFUNCTION, value);
}

static inline CURLcode ccurl_set_listener(CURL *transfer, curl_debug_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_DEBUGFUNCTION, value);
}

static inline CURLcode ccurl_set_progress(CURL *transfer, curl_xferinfo_callback value) {
    return curl_easy_setopt(transfer, CURLOPT_XFERINFOFUNCTION, value);
}

/// The number of connections that were opened for this transfer.
static inline long ccurl_connects(CURL *transfer) {
    long connects = 0;
    return curl_easy_getinfo(transfer, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK ? connects : 0;
}

static inline long ccurl_status(CURL *transfer) {
    long status = 0;
    return curl_easy_getinfo(transfer, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK ? status : 0;
}

static inline CURLMcode ccurl_multi_set_number(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// Sets both callbacks, which get `context`.
static inline void ccurl_multi_set_callbacks(
    CURLM *multi, void *context, curl_socket_callback socket, curl_multi_timer_callback timer) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
}

/// Returns the next transfer that has ended, and its result; null if there is none.
static inline CURL *ccurl_multi_ended(CURLM *multi, CURLcode *result) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            *result = message->data.result;
            return message->easy_handle;
        }
    }
    return NULL;
}

/// Whether libcurl resolves names without blocking the calling thread.
static inline int ccurl_looks_up_aside(void) {
    return (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) != 0;
}
