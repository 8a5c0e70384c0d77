<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * SecondFactor as a middleware in the shape of PSR-15, for requests and responses of PSR-7.
 *
 * The package depends on none of these interfaces, so the types are not in the signatures. It
 * answers the requests for the URL of the page, and passes all others on. Sessions are those of
 * PHP.
 */
final class Middleware
{
    /** @param object $responses a factory of PSR-17 (ResponseFactoryInterface) */
    public function __construct(
        private readonly SecondFactor $factor,
        private readonly object $responses,
    ) {
    }

    /**
     * @param object $request a ServerRequestInterface
     * @param object $handler a RequestHandlerInterface
     * @return object a ResponseInterface
     */
    public function process(object $request, object $handler): object
    {
        if ($request->getUri()->getPath() !== $this->factor->url) {
            return $handler->handle($request);
        }
        $isState = array_key_exists('state', $request->getQueryParams());
        $form = (array) ($request->getParsedBody() ?? self::formOf($request));
        return $this->response($this->factor->answer($request->getMethod(), $isState, $form));
    }

    /** For routers such as Slim, which take a function as a middleware. */
    public function __invoke(object $request, object $handler): object
    {
        return $this->process($request, $handler);
    }

    /**
     * Asks the user's phone, and leads to the waiting page: the response to the right password.
     *
     * @param object $request  a ServerRequestInterface
     * @param string $target   where an approval leads, a path of this website
     * @param mixed  ...$asked named arguments of Relay::ask; they win over those of the request
     */
    public function start(
        object $request,
        string $username,
        string $target = '/',
        mixed ...$asked,
    ): object {
        $asked += [
            'ip' => $request->getServerParams()['REMOTE_ADDR'] ?? null,
            'userAgent' => $request->getHeaderLine('user-agent'),
            'acceptLanguage' => $request->getHeaderLine('accept-language'),
        ];
        return $this->response($this->factor->start($username, $target, ...$asked));
    }

    private function response(Reply $reply): object
    {
        $response = $this->responses->createResponse($reply->status);
        foreach ($reply->headers as $name => $value) {
            $response = $response->withHeader($name, $value);
        }
        $response->getBody()->write($reply->body);
        return $response;
    }

    /**
     * The form of a request whose body no other middleware has parsed.
     *
     * @return array<mixed>
     */
    private static function formOf(object $request): array
    {
        $kind = strtolower(trim(explode(';', $request->getHeaderLine('content-type'), 2)[0]));
        if ($kind !== 'application/x-www-form-urlencoded') {
            return [];
        }
        parse_str((string) $request->getBody(), $form);
        return $form;
    }
}
