<?php

declare(strict_types=1);

// The package without Composer, and the classes that the tests share: Twoefay\Tests\X is
// tests/X.php.

require_once __DIR__ . '/../autoload.php';

error_reporting(E_ALL);

spl_autoload_register(static function (string $class): void {
    if (preg_match('/\ATwoefay\\\\Tests\\\\([A-Za-z]+)\z/', $class, $found) === 1) {
        require __DIR__ . "/$found[1].php";
    }
});
