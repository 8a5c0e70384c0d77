/// A gateway over Net::SMPP (Debian's libnet-smpp-perl), an independent implementation of SMPP. It
/// prints what it received, refuses numbers that end in 0, and ends with its first client.
public enum PerlGateway {
    public static func start() throws -> Child { try Child("perl", ["-e", script]) }

    private static let script = #"""
        use strict; use warnings; use Net::SMPP;
        $| = 1;
        my $listener = Net::SMPP->new_listen('127.0.0.1', port => 0, smpp_version => 0x34) or die "listen: $!";
        # Net::SMPP would wait for a client for two minutes only.
        $listener->timeout(undef);
        print "port ", $listener->sockport, "\n";
        my $client = $listener->accept or die "accept: $!";
        my @fields = qw(source_addr_ton source_addr_npi source_addr dest_addr_ton dest_addr_npi destination_addr
            esm_class protocol_id priority_flag validity_period registered_delivery data_coding);
        my $count = 0;
        while (my $pdu = $client->read_pdu) {
            my ($command, %answer) = ($pdu->{cmd}, seq => $pdu->{seq});
            if ($command == Net::SMPP::CMD_bind_transceiver) {
                print join(' ', 'bind', (map { $pdu->{$_} } qw(system_id password system_type)),
                    sprintf('%x', $pdu->{interface_version})), "\n";
                my $right = $pdu->{password} eq 'secret08';
                $client->bind_transceiver_resp(%answer, system_id => 'perl', status => $right ? 0 : 0x0e);
            } elsif ($command == Net::SMPP::CMD_submit_sm) {
                $count++;
                print join(' ', 'submit', (map { $pdu->{$_} } @fields), unpack('H*', $pdu->{short_message})), "\n";
                if ($pdu->{destination_addr} =~ /0$/) {
                    $client->submit_sm_resp(%answer, message_id => '', status => 0x0b);
                    next;
                }
                $client->submit_sm_resp(%answer, message_id => "perl-$count");
                $client->deliver_sm(async => 1, source_addr => $pdu->{destination_addr}, source_addr_ton => 1,
                    source_addr_npi => 1, destination_addr => $pdu->{source_addr}, esm_class => 4,
                    short_message => '', receipted_message_id => "perl-$count\0", message_state => "\2") or die;
            } elsif ($command == Net::SMPP::CMD_deliver_sm_resp) {
                print "heard $pdu->{status}\n";
                $client->enquire_link(async => 1) if $count == 1;
            } elsif ($command == Net::SMPP::CMD_enquire_link_resp) {
                print "alive $pdu->{status}\n";
            } elsif ($command == Net::SMPP::CMD_enquire_link) {
                $client->enquire_link_resp(%answer);
                print "asked\n";
            } elsif ($command == Net::SMPP::CMD_unbind) {
                $client->unbind_resp(%answer);
                print "unbind\n";
                last;
            } else {
                print "unknown $command\n";
            }
        }
        """#
}
