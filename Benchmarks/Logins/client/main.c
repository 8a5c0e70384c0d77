// client PORT CA ORIGIN WEBSITE CERTIFICATE KEY PHONES enrol COUNT [pushes]
// client PORT CA ORIGIN WEBSITE CERTIFICATE KEY PHONES load
//
// The first form enrols users and writes their phones to the file PHONES. The second form reads that
// file, prints the cost of a signature, and then takes cells from standard input, one on a line:
//
//     mtls|dpop|fresh|resumed held|after WIDTH RATE SECONDS WARM
//
// For each it connects the phones, logs in for WARM seconds, prints `ready`, waits for a line, runs
// the cell, and prints its figures as one line of JSON.
#include "client.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *origin, *website;

static double thread_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Prints the processor time of one signature with its texts, in microseconds.
static void print_signature_cost(void) {
    enum { COUNT = 2000 };
    static const char claims[300] = "{}";
    struct buffer text = {0};
    double start = thread_time();
    for (int at = 0; at < COUNT; at++) {
        text.used = 0;
        append_jws(&text, &phones[0].identity, "{\"alg\":\"ES256\",\"typ\":\"none\"}", claims, sizeof claims);
    }
    printf("{\"signature_us\":%.2f}\n", (thread_time() - start) / COUNT * 1e6);
    fflush(stdout);
    free(text.bytes);
}

static struct cell read_cell(const char *line, double *warm) {
    char how[8], held[8];
    struct cell cell;
    if (sscanf(line, "%7s %7s %d %lf %lf %lf", how, held, &cell.width, &cell.rate, &cell.seconds, warm) != 6)
        stop("not a cell: %s", line);
    cell.how = strcmp(how, "mtls") == 0 ? MTLS : strcmp(how, "dpop") == 0 ? DPOP : strcmp(how, "fresh") == 0 ? FRESH : RESUMED;
    cell.is_held = strcmp(held, "held") == 0;
    return cell;
}

static void take_cells(void) {
    char line[128];
    double warm;
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct cell cell = read_cell(line, &warm);
        prepare(&cell, warm);
        printf("ready\n");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) return;
        run_cell(&cell);
        fflush(stdout);
    }
}

int main(int count, char **words) {
    if (count < 9) stop("usage: see main.c");
    signal(SIGPIPE, SIG_IGN);
    origin = words[3];
    website = words[4];
    use_server("localhost", atoi(words[1]), words[2]);
    open_website(words[5], words[6], 8);
    if (strcmp(words[8], "enrol") == 0 && count > 9) {
        enrol(atoi(words[9]), count > 10);
        save_phones(words[7]);
    } else {
        load_phones(words[7]);
        print_signature_cost();
        take_cells();
    }
    return 0;
}
