<?php

declare(strict_types=1);

// Waits for a login in a process of its own, and prints its state.

require __DIR__ . '/bootstrap.php';

[, $origin, $at, $database, $login] = $argv;
$relay = new Twoefay\Relay(
    $origin,
    "$at/relay/ca.pem",
    "$at/shop.pem",
    "$at/shop.key",
    new Twoefay\SQLiteStore($database),
);
echo "waiting\n";
echo $relay->wait(Twoefay\Login::fromJson(json_decode($login, true)))->state;
