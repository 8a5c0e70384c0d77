<?php

declare(strict_types=1);

if ($_SERVER['REQUEST_METHOD'] === 'POST' && isset($_COOKIE[session_name()])) {
    session_start(SESSION);
    session_destroy();
}
header('location: /', true, 303);
