<?php

declare(strict_types=1);

// Calls one method of a store when it is told to: see Stores::race.

require __DIR__ . '/bootstrap.php';

[, $name, $method, $arguments] = $argv;
$store = Twoefay\Tests\Stores::open($name);
$arguments = unserialize(base64_decode($arguments));
echo "ready\n";
fgets(STDIN);
try {
    echo serialize($store->{$method}(...$arguments));
} catch (Throwable $error) {
    echo serialize(get_class($error) . ': ' . $error->getMessage());
}
