#pragma once
#include <maxminddb.h>

// Geo: variadic functions.

/// Reads a member of a record's `location`, for example "latitude".
static inline int cmaxmind_location(MMDB_entry_s *record, MMDB_entry_data_s *value, const char *of) {
    return MMDB_get_value(record, value, "location", of, NULL);
}

/// Reads the English name in a record under the key `of`, for example "city". With `several`, it
/// reads the first of a list, for example "subdivisions".
static inline int cmaxmind_name(MMDB_entry_s *record, MMDB_entry_data_s *name, const char *of, bool several) {
    return several ? MMDB_get_value(record, name, of, "0", "names", "en", NULL)
                   : MMDB_get_value(record, name, of, "names", "en", NULL);
}
