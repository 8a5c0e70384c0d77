<?php

declare(strict_types=1);

// A website with requests and responses of PSR-7, and a middleware in the shape of PSR-15. It needs
// a package for PSR-7, here Debian's php-guzzlehttp-psr7:
//
//     PHP_CLI_SERVER_WORKERS=4 php -S localhost:8000 clients/php/examples/psr15/index.php

use GuzzleHttp\Psr7\HttpFactory;
use GuzzleHttp\Psr7\Response;
use GuzzleHttp\Psr7\ServerRequest;
use Twoefay\Middleware;

require 'GuzzleHttp/Psr7/autoload.php'; // with Composer: vendor/autoload.php
require __DIR__ . '/../shop.php';

$relay = relay();
$middleware = new Middleware(second_factor($relay), new HttpFactory());

/** The pages of the website, behind the middleware. */
$pages = new class ($relay, $middleware) {
    public function __construct(
        private readonly Twoefay\Relay $relay,
        private readonly Middleware $middleware,
    ) {
    }

    public function handle(ServerRequest $request): object
    {
        return match ([$request->getMethod(), $request->getUri()->getPath()]) {
            ['GET', '/'] => new Response(200, ['content-type' => 'text/html'], home()),
            ['POST', '/login'] => $this->logIn($request),
            default => new Response(404),
        };
    }

    private function logIn(ServerRequest $request): object
    {
        $form = (array) $request->getParsedBody();
        $username = $form['username'] ?? null;
        if (!is_password($username, $form['password'] ?? null)) {
            return new Response(403, [], 'Wrong name or password');
        }
        $before = before_second_factor($this->relay, $username);
        if ($before !== null) {
            $fields = ['content-type' => 'text/html', 'cache-control' => 'no-store'];
            return new Response($before[0], $fields, $before[1]);
        }
        return $this->middleware->start($request, $username, service: 'Shop');
    }
};

$response = $middleware->process(ServerRequest::fromGlobals(), $pages);
http_response_code($response->getStatusCode());
foreach ($response->getHeaders() as $name => $values) {
    header("$name: " . implode(', ', $values));
}
echo $response->getBody();
