"""The text of the results. Every figure is also in the JSON, under the name in the heading."""
import counters

ROUTES = ("ask", "connect", "pending", "answer", "result", "login")


def rows_of(heading, rows):
    """Returns lines with columns as wide as their longest cell; the first three columns begin at the left."""
    widths = [max(len(str(row[column])) for row in [heading, *rows]) for column in range(len(heading))]
    return ["  ".join(str(cell).ljust(width) if column < 3 else str(cell).rjust(width)
                      for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in [heading, *rows]]


def load_of(cell):
    return f"{cell['width']} at once" if cell["loop"] == "closed" else f"{cell['rate']:.0f} a second"


def name_of(cell):
    return [cell["store"], f"{cell['phones']}, {cell['auth']}", load_of(cell)]


def number(value, digits=0):
    return "-" if value is None else f"{value:.{digits}f}"


def rates(cells):
    heading = ["store", "phones, /auth", "load", "logins/s", "/ single", "/ group", "single/s", "group/s", "apart", "relay us",
               "mariadbd us", "client us", "idle"]
    rows = [name_of(cell) + [
        number(cell["logins_per_second"], 1), number(cell["ratio_single"], 3), number(cell["ratio_group"], 4),
        number(cell["reference"]["single"]), number(cell["reference"]["group"]), f"{100 * cell['reference']['apart']:.0f} %",
        number(cell["cpu_us"]["relay"]), number(cell["cpu_us"].get("mariadbd")), number(cell["cpu_us"]["client"]),
        f"{100 * cell['idle']:.0f} %"] for cell in cells]
    return ["Logins a second, beside the reference, and processor time of a login in microseconds:", *rows_of(heading, rows)]


def counts(cells):
    heading = ["store", "phones, /auth", "load", "switches", "forced", "mariadbd sw.", "reads", "scripts", "selects", "writes",
               "commits", "fsyncs", "log bytes"]
    rows = []
    for cell in cells:
        each = cell["per_login"]
        switches, server = each["relay"]["switches"], each.get("mariadbd", {}).get("switches")
        said, requests = each.get("statements"), each["store_requests"]
        statements = ["-"] * 5 if said is None else [
            number(sum(said.get(name, 0) for name in counters.READS), 1),
            number(sum(said.get(name, 0) for name in counters.WRITES), 1), number(said.get("Com_commit", 0), 2),
            number(said.get("Innodb_data_fsyncs", 0), 2), number(said.get("Innodb_os_log_written", 0))]
        rows.append(name_of(cell) + [
            number(switches.get("voluntary", 0), 1), number(switches.get("involuntary", 0), 2),
            number(server and sum(server.values()), 1), number(requests.get("read", 0), 1), number(requests.get("write", 0), 1),
            *statements])
    return ["Counts of a login. Those from selects to log bytes are MariaDB's:", *rows_of(heading, rows)]


def times(cells):
    heading = ["store", "phones, /auth", "load", *ROUTES]
    rows = []
    for cell in cells:
        found = [cell["times"].get(route) for route in ROUTES]
        rows.append(name_of(cell) + [
            f"{one['p50']:.1f}/{one['p99']:.1f}/{one['p999']:.1f}" if one else "-" for one in found])
    return ["Times in milliseconds, p50/p99/p999:", *rows_of(heading, rows)]


def threads(cells):
    lines = ["Processor time of a login by thread, in microseconds:"]
    for cell in cells:
        for program in ("relay", "mariadbd"):
            if program in cell["per_login"]:
                each = cell["per_login"][program]
                found = sorted(each["threads"].items(), key=lambda item: -item[1])
                share = each["kernel"].get("system", 0) / max(sum(each["kernel"].values()), 1)
                lines.append("  ".join([*name_of(cell), program + ":"] + [
                    f"{name} {value / 1000:.0f}" for name, value in found if value >= 1000] + [f"({100 * share:.0f} % in the kernel)"]))
    return lines


def preloaded(cells):
    heading = ["store", "phones, /auth", "load", "thread", "allocations", "bytes", "statements", "commits", "fsyncs"]
    rows = []
    for cell in cells:
        for thread, found in sorted(cell["per_login"]["preloaded"].items(), key=lambda item: -item[1].get("allocations", 0)):
            if found.get("allocations", 0) >= 1:
                rows.append(name_of(cell) + [
                    thread, number(found.get("allocations", 0)), number(found.get("bytes", 0)),
                    number(found.get("statements", 0), 1), number(found.get("commits", 0), 2), number(found.get("syncs", 0), 2)])
    return ["Counts of a login in the relay's own process, by a preloaded library (statements, commits and fsyncs are SQLite's):",
            *rows_of(heading, rows)]


def text(results):
    cells = [cell for cell in results["cells"] if not cell["is_counted"]]
    counted = [cell for cell in results["cells"] if cell["is_counted"]]
    lines = []
    for part in (rates, counts, times, threads):
        lines += [*part(cells), ""] if cells else []
    if counted:
        lines += [*preloaded(counted), ""]
    signature = ", ".join(f"{value:.0f} us" for value in results["signature_us"])
    lines.append(f"One signature of the client takes {signature}; a login has one, with DPoP three.")
    faults = [f"{' '.join(name_of(cell))}: {cell['faults']} faults, the first: {cell['fault']}" for cell in results["cells"]
              if cell["faults"]]
    return "\n".join(lines + faults)
