<?php

declare(strict_types=1);

// A website of plain PHP pages, in place of a web server that maps paths to files:
//
//     PHP_CLI_SERVER_WORKERS=4 php -S localhost:8000 clients/php/examples/site/index.php

$pages = [
    '/' => 'home.php',
    '/login' => 'login.php',
    '/logout' => 'logout.php',
    '/second-factor' => 'second-factor.php',
    '/webhook' => 'webhook.php',
];
$page = $pages[parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)] ?? null;
if ($page === null) {
    http_response_code(404);
    exit;
}
require __DIR__ . '/../shop.php';
require __DIR__ . "/$page";
