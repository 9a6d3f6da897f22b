// Counts words.
const std = @import("std");

const limit: usize = 0x400;

pub const Counter = struct {
    words: usize = 0,

    pub fn add(self: *Counter, text: []const u8) void {
        var inside = false;
        for (text) |c| {
            if (c == ' ' or c == '\'') {
                inside = false;
            } else if (!inside) {
                inside = true;
                self.words += 1;
            }
        }
    }
};

pub fn main() !void {
    var counter = Counter{};
    counter.add("it's a \"text\"");
    std.debug.print("{d} words, {d}\n", .{ counter.words, 1.5 });
    if (counter.words > limit) return error.TooMany;
}
