<?php

declare(strict_types=1);

$username = $_POST['username'] ?? null;
if (!is_password($username, $_POST['password'] ?? null)) {
    http_response_code(403);
    exit('Wrong name or password');
}
$relay = relay();
$before = before_second_factor($relay, $username);
if ($before !== null) {
    http_response_code($before[0]);
    header('cache-control: no-store');
    exit($before[1]);
}
second_factor($relay)->start($username, service: 'Shop')->send();
