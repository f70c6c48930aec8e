/* A driver that is no driver. */
int cuInit(unsigned flags) { return (int)flags; }
