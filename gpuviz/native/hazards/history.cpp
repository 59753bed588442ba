#include "hazards/history.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace gpuviz::hazards {

namespace {

std::vector<Piece>::iterator first_behind(std::vector<Piece>& pieces, std::uint64_t address) {
    return std::partition_point(pieces.begin(), pieces.end(),
                                [&](const Piece& piece) { return piece.stop <= address; });
}

// Makes the address a border of pieces; returns the first piece that does not end before it.
std::vector<Piece>::iterator split(std::vector<Piece>& pieces, std::uint64_t address) {
    const auto piece = first_behind(pieces, address);
    if (piece == pieces.end() || piece->start >= address) return piece;
    Piece rest{address, piece->stop, piece->past};
    piece->stop = address;
    return pieces.insert(std::next(piece), std::move(rest));
}

void move_pieces(std::vector<Piece>& from, std::uint64_t address, std::vector<Piece>& to) {
    const auto first = split(from, address);
    to.insert(to.end(), std::make_move_iterator(first), std::make_move_iterator(from.end()));
    from.erase(first, from.end());
}

void add_to(Piece& piece, const PastAccess& access) {
    const bool replaces_all = access.mode == Mode::write && access.is_exact;
    std::erase_if(piece.past, [&](const PastAccess& past) {
        if (past.operation == access.operation) return false;
        return replaces_all || (past.slot == access.slot && past.mode == access.mode &&
                                past.is_exact == access.is_exact);
    });
    piece.past.push_back(access);
}

bool has_same_past(const Piece& a, const Piece& b) {
    if (a.past.size() != 1 || b.past.size() != 1) return false;
    const PastAccess &x = a.past[0], &y = b.past[0];
    return x.operation == y.operation && x.block == y.block && x.pointer == y.pointer &&
           x.mode == y.mode && x.is_exact == y.is_exact;
}

// Merges adjacent pieces that one access wrote.
void merge(std::vector<Piece>& pieces, std::size_t first, std::size_t last) {
    std::size_t kept = first;
    for (std::size_t each = first + 1; each < last; ++each) {
        if (pieces[kept].stop == pieces[each].start && has_same_past(pieces[kept], pieces[each])) {
            pieces[kept].stop = pieces[each].stop;
        } else if (++kept != each) {
            pieces[kept] = std::move(pieces[each]);
        }
    }
    if (last <= kept + 1) return;
    pieces.erase(pieces.begin() + std::ptrdiff_t(kept + 1), pieces.begin() + std::ptrdiff_t(last));
}

}  // namespace

History::Extents::iterator History::first_overlapping(std::uint64_t start) {
    auto found = extents_.upper_bound(start);
    if (found != extents_.begin() && std::prev(found)->second.stop > start) --found;
    return found;
}

void History::split_vacant(std::uint64_t address) {
    const auto found = first_overlapping(address);
    if (found == extents_.end() || found->second.start >= address) return;
    Extent& front = found->second;
    Extent back{address, front.stop, 0, front.release, {}};
    move_pieces(front.pieces, address, back.pieces);
    front.stop = address;
    extents_.emplace(address, std::move(back));
}

Extent& History::occupy(std::uint64_t start, std::uint64_t stop, BlockId owner,
                        std::vector<std::shared_ptr<const Release>>& releases) {
    for_each_extent(start, stop, false, [&](const Extent& extent) {
        if (extent.owner == 0) return;
        throw std::invalid_argument("the memory at " + std::to_string(start) +
                                    " belongs to another block");
    });
    split_vacant(start);
    split_vacant(stop);
    Extent whole{start, stop, owner, {}, {}};
    auto each = extents_.lower_bound(start);
    while (each != extents_.end() && each->second.start < stop) {
        Extent& part = each->second;
        std::move(part.pieces.begin(), part.pieces.end(), std::back_inserter(whole.pieces));
        if (part.release) releases.push_back(part.release);
        each = extents_.erase(each);
    }
    return extents_.emplace_hint(each, start, std::move(whole))->second;
}

void History::vacate(Extent& extent, std::shared_ptr<const Release> release) {
    extent.owner = 0;
    extent.release = std::move(release);
}

void History::forget_vacant(std::uint64_t start, std::uint64_t stop) {
    split_vacant(start);
    split_vacant(stop);
    auto each = extents_.lower_bound(start);
    while (each != extents_.end() && each->second.start < stop) {
        each = each->second.owner == 0 ? extents_.erase(each) : std::next(each);
    }
}

void History::add(Extent& extent, std::uint64_t start, std::uint64_t stop,
                  const PastAccess& access) {
    std::vector<Piece>& pieces = extent.pieces;
    if (pieces.size() == 1 && pieces[0].start == start && pieces[0].stop == stop) {
        add_to(pieces[0], access);
        return;
    }
    split(pieces, stop);
    auto each = split(pieces, start);
    const auto first = static_cast<std::size_t>(each - pieces.begin());
    while (start < stop) {
        const bool is_there = each != pieces.end() && each->start < stop;
        const std::uint64_t next = is_there ? each->start : stop;
        if (start < next) each = pieces.insert(each, Piece{start, next, {}});
        start = each->stop;
        add_to(*each, access);
        ++each;
    }
    const auto last = std::min(static_cast<std::size_t>(each - pieces.begin()) + 1, pieces.size());
    merge(pieces, first == 0 ? 0 : first - 1, last);
}

}  // namespace gpuviz::hazards
