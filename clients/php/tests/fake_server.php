<?php

declare(strict_types=1);

// A server with TLS that answers requests as their path says, and keeps the connection after
// /number. It needs a client certificate. Prints its port. Arguments: the certificate with its key,
// and the authority.

[, $certificate, $authority] = $argv;
$context = stream_context_create(['ssl' => [
    'local_cert' => $certificate,
    'cafile' => $authority,
    'verify_peer' => true,
    'verify_peer_name' => false,
    'capture_peer_cert' => true,
]]);
$flags = STREAM_SERVER_BIND | STREAM_SERVER_LISTEN;
$server = stream_socket_server('tcp://127.0.0.1:0', $error, $text, $flags, $context);
echo substr(strrchr(stream_socket_get_name($server, false), ':'), 1), "\n";

$plain = "content-type: application/json\r\n";
$kept = [];
$number = 0;
$lost = 0;
while (true) {
    $ready = [$server, ...$kept];
    $none = null;
    stream_select($ready, $none, $none, null);
    $connection = reset($ready);
    if ($connection === $server) {
        $connection = stream_socket_accept($server, -1);
        $method = STREAM_CRYPTO_METHOD_TLS_SERVER;
        if (@stream_socket_enable_crypto($connection, true, $method) !== true) {
            fclose($connection);
            continue;
        }
        $number++;
    }
    $kept = array_filter($kept, fn($other) => $other !== $connection);
    $head = '';
    while (($line = fgets($connection)) !== false && trim($line) !== '') {
        $head .= $line;
    }
    $isRequest = preg_match('/^[A-Z]+ ([^? ]+)/', $head, $path) === 1;
    preg_match('/content-length: ([0-9]+)/i', $head, $length);
    $body = isset($length[1]) ? stream_get_contents($connection, (int) $length[1]) : '';
    $peer = stream_context_get_params($connection)['options']['ssl']['peer_certificate'];
    $seen = ['head' => $head, 'body' => $body, 'peer' => openssl_x509_parse($peer)['subject']['CN']];
    $answer = match ($isRequest ? $path[1] : '/close') {
        '/echo' => "HTTP/1.1 200 OK\r\n$plain\r\n" . json_encode($seen),
        '/close' => '',
        '/lost' => str_repeat('', ++$lost),
        '/times' => "HTTP/1.1 200 OK\r\n$plain\r\n$lost",
        '/number' => "HTTP/1.1 200 OK\r\n{$plain}content-length: 9\r\n\r\n" . sprintf('%9d', $number),
        '/truncated' => "HTTP/1.1 200 OK\r\n{$plain}content-length: 100\r\n\r\n{}",
        '/redirect' => "HTTP/1.1 307 No\r\nlocation: https://127.0.0.1:1/x\r\n\r\n",
        '/packed' => "HTTP/1.1 200 OK\r\n{$plain}content-encoding: gzip\r\n\r\n" . gzencode('{}'),
        '/interim' => "HTTP/1.1 103 Early\r\nretry-after: 9\r\n\r\nHTTP/1.1 200 OK\r\n$plain\r\n{}",
        '/twice' => "HTTP/1.1 200 OK\r\n{$plain}Content-Type: text/html\r\n\r\n{}",
        '/fields' => "HTTP/1.1 200 OK\r\n" . str_repeat('x: ' . str_repeat('y', 1000) . "\r\n", 2000),
        '/garbage' => "\0\0\0\0\r\n",
        '/endless' => "HTTP/1.1 200 OK\r\n$plain\r\n",
    };
    @fwrite($connection, $answer);
    while (str_contains($head, ' /endless ') && @fwrite($connection, str_repeat(' ', 65_536))) {
    }
    if (str_contains($head, ' /number ')) {
        $kept[] = $connection;
    } else {
        fclose($connection);
    }
}
