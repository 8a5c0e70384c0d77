<?php

declare(strict_types=1);

namespace Twoefay;

/** Sends one request, and returns one answer. It repeats nothing and follows nothing. */
interface Transport
{
    /** Throws Unreachable if there is no answer. */
    public function send(Call $call): Answer;
}
