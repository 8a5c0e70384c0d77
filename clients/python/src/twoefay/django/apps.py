from pathlib import Path

from django.apps import AppConfig


class TwoefayConfig(AppConfig):
    name = "twoefay.django"
    label = "twoefay"
    default_auto_field = "django.db.models.BigAutoField"
    # All frameworks share one template, which lies beside this package.
    path = str(Path(__file__).parents[1])
