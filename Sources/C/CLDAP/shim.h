#pragma once
#include <ldap.h>

// DirectorySources: constants with casts and pointers, which Swift cannot import.

static inline int cldap_refuse_referrals(LDAP *ld) {
    return ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
}

static inline int cldap_is_entry(LDAPMessage *message) {
    return (ber_tag_t)ldap_msgtype(message) == LDAP_RES_SEARCH_ENTRY;
}

static inline int cldap_is_result(LDAPMessage *message) {
    return (ber_tag_t)ldap_msgtype(message) == LDAP_RES_SEARCH_RESULT;
}

/// Limits the size of one message from the server, before memory for it is allocated.
static inline int cldap_limit_message(LDAP *ld, ber_len_t bytes) {
    Sockbuf *buffer = NULL;
    if (ldap_get_option(ld, LDAP_OPT_SOCKBUF, &buffer) != LDAP_OPT_SUCCESS || buffer == NULL) return -1;
    return ber_sockbuf_ctrl(buffer, LBER_SB_OPT_SET_MAX_INCOMING, &bytes);
}

/// A simple bind (RFC 4513 §5.1.3).
static inline int cldap_bind(LDAP *ld, const char *dn, const void *password, ber_len_t count) {
    struct berval credentials = {.bv_len = count, .bv_val = (char *)password};
    return ldap_sasl_bind_s(ld, dn, LDAP_SASL_SIMPLE, &credentials, NULL, NULL, NULL);
}

/// Starts a search below `base`. The attributes end with a null pointer.
static inline int cldap_search(
    LDAP *ld, const char *base, const char *filter, char **attributes, LDAPControl *page, int *id
) {
    LDAPControl *controls[2] = {page, NULL};
    return ldap_search_ext(
        ld, base, LDAP_SCOPE_SUBTREE, filter, attributes, 0, page == NULL ? NULL : controls, NULL, NULL, LDAP_NO_LIMIT,
        id);
}
