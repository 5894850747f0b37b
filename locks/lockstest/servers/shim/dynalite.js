// Loaded into dynalite before its own code. Its handler of requests throws the error of a
// request whose connection was reset before all of it had come, and with that the server
// would end. Every other error ends it, as before.
process.on('uncaughtException', (err) => {
  if (err.code === 'ECONNRESET') return
  console.error(err)
  process.exit(1)
})
