#!/usr/bin/perl
use strict;
use warnings;

=head1 NAME

words - counts words

=cut

# One word at a time.
my %counts;
while (my $line = <STDIN>) {
    chomp $line;
    next unless length $line;
    for my $word (split / +/, $line) {
        $counts{$word}++;
    }
}

sub longest {
    my ($limit) = @_;
    my @words = sort { length($b) <=> length($a) } keys %counts;
    return $words[0] if @words > $limit;
    return undef;
}

print "longest: ", longest(0x1), "\n";
print 'it is', " \"quoted\"", 1.5, "\n";
my @list = ('one', 'two', 'three');
print <<"END";
total: a number
END
