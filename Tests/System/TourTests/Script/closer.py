"""What no store can change: how the pages look and are used, in whichever frame, width and language."""


def logs_in_as_wide_as_a_phone(tour):
    site, phone = tour.site, tour.phone
    with site.window.as_wide_as(390, 844), phone.window.as_wide_as(390, 844):
        site.log_out()
        tour.looks.check("welcome", site.window)
        site.begin()
        phone.approve(site.number())
        site.is_in("Your phone let you in, and we have checked its signature.")


def logs_in_within_the_dashboard(tour):
    """Where website and phone stand beside each other."""
    dashboard = tour.dashboard
    site, phone = dashboard.frames()
    dashboard.window.press("Clear")
    website, handset = dashboard.window.places("#website", "#panel-1 iframe")
    assert website["right"] <= handset["left"] and website["top"] < handset["bottom"] > website["top"], (website, handset)
    site.person = tour.site.person
    site.log_out()
    site.begin()
    phone.ring()
    phone.type(site.number())
    tour.looks.check("dashboard with its frames", dashboard.window, (site.window, phone.window))
    phone.window.press("Approve")
    phone.window.heading("Approved")
    site.is_in("Your phone let you in, and we have checked its signature.")
    dashboard.window.says("Approved. The website verifies the signature itself.")
    tour.phone.ignore()


def speaks_german(tour):
    site, phone = tour.site, tour.phone
    phone.window.press("Settings")
    phone.window.heading("Settings")
    english = phone.window.words()
    phone.window.choose("Language", "Deutsch")
    phone.window.heading("Einstellungen")
    is_german(phone.window, english, {"Codes", "The Shop"})
    tour.looks.shot("phone-german", phone)
    site.window.press("Members", "nav a")
    site.window.heading("Members")
    english = site.window.words()
    site.window.press("Deutsch")
    site.window.heading("Mitglieder")
    is_german(site.window, english, {"The Shop"})
    tour.looks.shot("members-german", site)
    site.log_out("Abmelden", "Sie sind abgemeldet.")
    site.begin("Benutzername", "Passwort", "Anmelden")
    number = site.number()
    phone.ring()
    phone.window.heading("Sind Sie das?")
    phone.type(number, "Zahl auf der Website")
    tour.looks.shot("phone-question-german", phone)
    phone.window.press("Bestätigen")
    phone.window.heading("Bestätigt")
    site.window.heading("Mitglieder")


def speaks_german_in_the_dashboard(tour):
    """And is as wide as a phone."""
    dashboard = tour.dashboard
    inside = dashboard.frames()
    dashboard.notes("The gateway holds this message for 20 seconds.")
    english = dashboard.window.words()
    dashboard.window.press("Deutsch")
    is_german(dashboard.window, english, {"Twoefay", "Website", "Relay", "Push, SMS"})
    follow(inside, "de")
    tour.looks.check_width("dashboard with messages", dashboard.window)
    dashboard.window.press("Leeren")
    with dashboard.window.as_wide_as(390, 844):
        for place in dashboard.window.places("#website", "#panel-1 iframe"):
            assert place["height"] > 400, f"nothing is seen in {place}"
        tour.looks.shot("dashboard-german", dashboard)
    dashboard.window.press("English")
    dashboard.window.until(lambda: dashboard.window.language() == "en", "English")
    follow(inside, "en")


def follow(inside, language):
    """Website and phone in their frames say it as the dashboard does."""
    for one in inside:
        one.window.until(lambda: one.window.language() == language, f"{language} in a frame")


def is_german(window, english, same):
    """`same` is what is the same in both."""
    window.until(lambda: window.language() == "de", "German")
    left = window.words() & english - same - {"English", "Deutsch"}
    assert not left, f"English in {window.driver.current_url}: {left}"


def shows_the_dashboard(tour):
    dashboard = tour.dashboard
    dashboard.listen()
    pairs = {(one.get("from"), one.get("to")) for one in dashboard.said}
    for pair in [("website", "relay"), ("relay", "push service"), ("phone", "relay"), ("relay", "website")]:
        assert pair in pairs, f"{pair} is none of {pairs}"
    tour.looks.shot("dashboard", dashboard, scale=0.45)
