// The times of a cell: all samples are kept, and sorted at the end.
#include "client.h"
#include <stdlib.h>

static struct {
    uint64_t *values;
    size_t used, capacity;
} samples[ROUTES];

static const char *const names[ROUTES] = {"ask", "connect", "pending", "answer", "result", "login", "late"};

void record(enum route route, uint64_t nanoseconds) {
    if (samples[route].used == samples[route].capacity) {
        samples[route].capacity = samples[route].capacity * 2 + 4096;
        samples[route].values =
            realloc(samples[route].values, samples[route].capacity * sizeof *samples[route].values);
        if (samples[route].values == NULL) stop("no memory");
    }
    samples[route].values[samples[route].used++] = nanoseconds;
}

void forget_samples(void) {
    for (int route = 0; route < ROUTES; route++) samples[route].used = 0;
}

static int compare(const void *first, const void *second) {
    uint64_t one = *(const uint64_t *)first, other = *(const uint64_t *)second;
    return (one > other) - (one < other);
}

static double quantile(int route, double share) {
    size_t at = (size_t)(share * samples[route].used);
    if (at >= samples[route].used) at = samples[route].used - 1;
    return samples[route].values[at] / 1e6;
}

// Prints an object of the routes in milliseconds, without those that this cell does not have.
void print_samples(FILE *file) {
    fputc('{', file);
    for (int route = 0, printed = 0; route < ROUTES; route++) {
        if (samples[route].used == 0) continue;
        qsort(samples[route].values, samples[route].used, sizeof(uint64_t), compare);
        fprintf(
            file, "%s\"%s\":{\"count\":%zu,\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"most\":%.3f}",
            printed++ > 0 ? "," : "", names[route], samples[route].used, quantile(route, 0.5), quantile(route, 0.99),
            quantile(route, 0.999), quantile(route, 1));
    }
    fputc('}', file);
}
