<?php

declare(strict_types=1);

// A website that accepts codes, and whose users need no password.

require __DIR__ . '/../examples/shop.php';

$at = files();
$factor = second_factor(new Twoefay\Relay(
    getenv('SHOP_RELAY'),
    ca: "$at/relay/ca.pem",
    certificate: "$at/shop.pem",
    key: "$at/shop.key",
    store: new Twoefay\SQLiteStore("$at/shop.db"),
    acceptCodes: true,
));
match (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    '/' => print home(),
    '/login' => $factor->start($_POST['username'], target: $_POST['target'])->send(),
    default => $factor->run(),
};
