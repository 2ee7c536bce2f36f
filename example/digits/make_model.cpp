// Makes the file of a model that recognises handwritten digits, from the weights of train.py:
//   make_model data/weights.txt models/digits/1/model.plan

#include "text_files.hpp"

#include <coaccel/coaccel.hpp>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

namespace ca = coaccel;

//[digits_model
// softmax(second * relu(first * image + first_bias) + second_bias), for `rows` images at a time. The weights are
// row-major in their file, with a row for each input: to BLAS, which is column-major, such a row is a column.
void add_perceptron(ca::plan_builder& b, const digits::weights& w, std::uint64_t rows)
{
    const auto image = b.input<float>(ca::batch_of(rows, {{8, 8}}), "image");
    const auto first = b.constant<float>(w.first, "first");
    const auto first_bias = b.constant<float>(w.first_bias, "first_bias");
    const auto second = b.constant<float>(w.second, "second");
    const auto second_bias = b.constant<float>(w.second_bias, "second_bias");
    const auto h = b.scratch<float>(w.hidden * rows, "h");
    const auto z = b.scratch<float>(digits::classes * rows, "z");
    const auto probabilities = b.output<float>(ca::batch_of(rows, {{digits::classes}}), "probabilities");
    b.add(ca::blas::gemm<float>{.a = first, .b = image, .c = h, .m = w.hidden, .n = rows, .k = digits::pixels});
    b.add(ca::prim::bias_activation<float>{
        .x = h, .bias = first_bias, .y = h, .rows = rows, .columns = w.hidden, .what = ca::prim::activation::relu});
    b.add(ca::blas::gemm<float>{.a = second, .b = h, .c = z, .m = digits::classes, .n = rows, .k = w.hidden});
    b.add(ca::prim::bias_activation<float>{
        .x = z, .bias = second_bias, .y = z, .rows = rows, .columns = digits::classes});
    b.add(ca::prim::softmax<float>{.x = z, .y = probabilities, .n = digits::classes, .outer = rows});
}

// One plan for each batch size. A server runs a batch with the smallest plan that holds it.
ca::result<ca::plan_set_description> make_model(const digits::weights& w)
{
    ca::plan_set_builder set("digits");
    for (const std::uint64_t rows : {1, 8, 64})
        add_perceptron(set.plan("rows" + std::to_string(rows)), w, rows);
    return set.finish();
}
//]

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::cerr << "usage: make_model WEIGHTS PLAN\n";
        return 2;
    }
    const auto weights = digits::read_weights(argv[1]);
    if (!weights) {
        std::cerr << argv[1] << ": no weights of the digits model\n";
        return 1;
    }
    const auto model = make_model(*weights);
    if (!model) {
        std::cerr << model.error().message() << '\n';
        return 1;
    }
    std::error_code bad;
    std::filesystem::create_directories(std::filesystem::path(argv[2]).parent_path(), bad);
    if (const auto saved = model.value().save(argv[2]); !saved) {
        std::cerr << saved.error().message() << '\n';
        return 1;
    }
    return 0;
}
