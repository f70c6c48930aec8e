# cmake -DINPUT=x.bc -DOUTPUT=x.cpp -DNAME=x -P EmbedBitcode.cmake: writes the bytes of a file as a C++ array.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <cstddef>
namespace attn {
extern const unsigned char ${NAME}[];
extern const std::size_t ${NAME}Size;
alignas(16) const unsigned char ${NAME}[] = {
${bytes}};
const std::size_t ${NAME}Size = sizeof(${NAME});
} // namespace attn
")
