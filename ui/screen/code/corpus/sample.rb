# Counts words.
require 'set'

=begin
A longer comment
over lines.
=end
module Words
  class Counter
    attr_reader :counts

    def initialize(limit = 1_000)
      @limit = limit
      @counts = Hash.new(0)
    end

    def add(text)
      text.split(/[\s"]+/).each do |word|
        next if word.empty?
        @counts[word] += 1
      end
    end

    def longest
      @counts.keys.max_by { |word| word.length }
    end
  end
end

counter = Words::Counter.new
counter.add("it's a \"text\"")
puts 'longest', counter.longest unless counter.counts.empty?
text = <<~END
  a longer text
END
puts text, 1.5, nil, true
