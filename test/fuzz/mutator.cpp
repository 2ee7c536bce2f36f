// Most bytes of an input are numbers inside a record: sizes, offsets, positions. Every second mutation changes one of
// them a little and leaves the rest unchanged.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    std::minstd_rand random(seed);
    if (size == 0 || random() % 2 == 0)
        return LLVMFuzzerMutate(data, size, most);
    const std::size_t at = random() % size;
    const std::size_t width = std::min(std::size_t(1) << random() % 4, size - at);
    std::uint64_t number = 0;
    std::memcpy(&number, data + at, width);
    const std::uint64_t step = std::uint64_t(1) << random() % 12;
    number = random() % 2 == 0 ? number + step : number - step;
    std::memcpy(data + at, &number, width);
    return size;
}
