<?php

declare(strict_types=1);

// The loader of this package, with Composer and without it: class Twoefay\Relay is src/Relay.php.

require_once __DIR__ . '/src/errors.php';

spl_autoload_register(static function (string $class): void {
    if (preg_match('/\ATwoefay\\\\([A-Za-z0-9]+)\z/', $class, $found) === 1) {
        $file = __DIR__ . "/src/$found[1].php";
        if (is_file($file)) {
            require $file;
        }
    }
});
