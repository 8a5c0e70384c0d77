"""The second factor for Django.

Add "twoefay.django" to INSTALLED_APPS, include "twoefay.django.urls", and set TWOEFAY:

    TWOEFAY = {"origin": "https://login.example.com:8080", "ca": "ca.pem",
               "certificate": "shop.pem", "key": "shop.key"}

After the right password, `return start(request, user)`. The user is logged in after the phone has
approved and the receipt was checked.
"""
