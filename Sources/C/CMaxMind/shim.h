#pragma once
#include <maxminddb.h>

// Geo: variadics.

/// The English name that a record has under `of`, as "city"; or of the first of several, as "subdivisions".
static inline int cmaxmind_name(MMDB_entry_s *record, MMDB_entry_data_s *name, const char *of, bool several) {
    return several ? MMDB_get_value(record, name, of, "0", "names", "en", NULL)
                   : MMDB_get_value(record, name, of, "names", "en", NULL);
}
