<?php

declare(strict_types=1);

second_factor(relay())->run();
